"""Names to classes and objects, found without importing them until they are asked for."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from oodscope.base.catalog import catalog, plugins
from oodscope.base.errors import OodscopeError, UnknownNameError

T = TypeVar("T")

FEW = 12
"""Names that an error message still lists in full."""


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
        if name not in self:
            raise UnknownNameError(self.kind, name, self.names(), f"See: oodscope list {self.kind}s")
        target = plugins(f"{self.kind}s").get(name) or self._builtin()[name]["target"]
        return self._checked(name, load_target(self.kind, name, target))

    def __contains__(self, name: str) -> bool:
        return name in self._registered or name in self._builtin() or name in plugins(f"{self.kind}s")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _builtin(self) -> dict[str, dict[str, Any]]:
        return catalog(f"{self.kind}s")

    def _checked(self, name: str, cls: object) -> type[T]:
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise OodscopeError(f"{self.kind} {name!r} must be a subclass of {self.base.__name__}, not {cls!r}")
        return cls


class Collection(Mapping[str, T]):
    """Objects of one kind by name: those of the package, of installed packages, and those registered in code.

    The last wins, as in a :class:`Registry`. An installed package offers objects through the entry point group
    ``oodscope.<section>``: a name, and ``module:object``, which is imported when the name is asked for.

    Parameters
    ----------
    kind : singular noun for messages, such as ``table format``.
    section : of the catalogue, and of the entry point group.
    own : the objects of the package, or a function that imports them when they are asked for.
    check : whether an object of others is one of this kind; a refusal names ``expected``.
    named : the name that an object carries itself, which must be the one that it is known by.
    """

    def __init__(
        self,
        kind: str,
        section: str,
        own: Mapping[str, T] | Callable[[], Mapping[str, T]],
        *,
        check: Callable[[Any], bool],
        expected: str,
        named: Callable[[T], str] | None = None,
    ) -> None:
        self.kind = kind
        self.section = section
        self._own = own
        self._named = named
        self._check = check
        self._expected = expected
        self._registered: dict[str, T] = {}

    @property
    def own(self) -> Mapping[str, T]:
        """The objects that come with the package."""
        return self._own() if callable(self._own) else self._own

    def others(self) -> list[str]:
        """The names that come from installed packages and from ``register``; nothing is imported."""
        return list(dict.fromkeys([*plugins(self.section), *self._registered]))

    def register(self, name: str, value: T) -> T:
        """Make ``value`` known as ``name`` in this process."""
        self._registered[name] = self._checked(name, value)
        return value

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name]
        if target := plugins(self.section).get(name):
            return self._checked(name, load_target(self.kind, name, target))
        if name not in self.own:
            hint = f"Known: {', '.join(self)}" if len(self) <= FEW else f"See: oodscope list {self.section}"
            raise UnknownNameError(self.kind, name, self, hint)
        return self.own[name]

    def __contains__(self, name: object) -> bool:
        # an object is not imported to learn that its name exists
        return name in self.others() or name in self.own

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.own, *self.others()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _checked(self, name: str, value: Any) -> T:
        if not self._check(value):
            raise OodscopeError(f"{self.kind} {name!r} must be {self._expected}, not {value!r}")
        checked: T = value
        if self._named is not None and self._named(checked) != name:
            raise OodscopeError(f"{self.kind} {name!r}: the object calls itself {self._named(checked)!r}; use one name")
        return checked


@cache
def load_target(kind: str, name: str, target: str) -> Any:
    """The object that an entry point names as ``module:object``, imported now."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise OodscopeError(f"{kind} {name!r} cannot be loaded from {target}: {error}") from error
