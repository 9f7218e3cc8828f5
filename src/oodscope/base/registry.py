"""Names to classes, found without importing them until they are asked for."""

from collections.abc import Iterator
from importlib import import_module
from typing import Generic, TypeVar

from oodscope.base.catalog import catalog, plugins
from oodscope.base.errors import OodscopeError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Lazy registry of one kind of thing.

    A name comes from the package's own catalogue, from an installed plugin (entry point group
    ``oodscope.<kinds>``), or from ``register`` in code; the last wins, so a user may try a variant
    under the old name.

    Parameters
    ----------
    kind : singular noun for messages, such as ``detector``; the catalogue's section is its plural.
    base : what every registered class must derive from.
    """

    def __init__(self, kind: str, base: type[T]) -> None:
        self.kind = kind
        self.base = base
        self._registered: dict[str, type[T]] = {}

    def register(self, name: str, cls: type[T]) -> type[T]:
        """Make ``cls`` known as ``name`` in this process."""
        self._registered[name] = self._checked(name, cls)
        return cls

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted({*self._builtin(), *plugins(f"{self.kind}s"), *self._registered})

    def get(self, name: str) -> type[T]:
        """The class called ``name``, imported now; an unknown name suggests the nearest."""
        if name in self._registered:
            return self._registered[name]
        target = {**self._builtin(), **plugins(f"{self.kind}s")}.get(name)
        if target is None:
            raise UnknownNameError(self.kind, name, self.names(), f"See: oodscope list {self.kind}s")
        module, _, attribute = target.partition(":")
        try:
            cls = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise OodscopeError(f"{self.kind} {name!r} cannot be loaded from {target}: {error}") from error
        return self._checked(name, cls)

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _builtin(self) -> dict[str, str]:
        return {name: entry["target"] for name, entry in catalog(f"{self.kind}s").items()}

    def _checked(self, name: str, cls: object) -> type[T]:
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise OodscopeError(f"{self.kind} {name!r} must be a subclass of {self.base.__name__}, not {cls!r}")
        return cls
