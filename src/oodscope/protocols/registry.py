"""Protocols by name: those of the package, of installed packages, and those registered in code."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from oodscope.base.errors import OodscopeError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.protocols.base import Protocol

PROTOCOLS: Registry[Protocol] = Registry("protocol", Protocol)  # type: ignore[type-abstract]


def create_protocol(name: str, **options: Any) -> Protocol:
    """The protocol called ``name`` with these options; unknown names and options suggest the nearest."""
    cls = PROTOCOLS.get(name)
    known = list(inspect.signature(cls).parameters)
    for key in options:
        if key not in known:
            near = did_you_mean(key, known) or f" It has: {', '.join(known) or 'none'}"
            raise OodscopeError(f"protocol {name}: no option {key!r}.{near}")
    return cls(**options)


def protocol_of(row_name: str) -> type[Protocol]:
    """The protocol that measured a row: ``full_spectrum:balanced`` is a view of ``full_spectrum``."""
    return PROTOCOLS.get(row_name.partition(":")[0])


def headline_metrics(row_name: str) -> tuple[str, ...]:
    """What a reader of this protocol looks at first; the first of them ranks the detectors."""
    return protocol_of(row_name).headline


Asked = str | Protocol | Mapping[str, Any]
"""A protocol as people ask for it: its name, an object, or ``{name: {option: value}}`` as in a YAML file."""


def read_protocols(asked: Asked | Iterable[Asked]) -> list[Protocol]:
    """The protocols that were asked for, each once; checked before anything is opened."""
    given = [asked] if isinstance(asked, (str, Protocol, Mapping)) else list(asked)
    protocols = [_read(each) for each in given]
    if not protocols:
        raise OodscopeError("no protocol given; use protocols=['standard']")
    names = [each.name for each in protocols]
    for name in names:
        if names.count(name) > 1:
            raise OodscopeError(f"protocol {name} is asked for twice")
    return protocols


def _read(asked: Asked) -> Protocol:
    if isinstance(asked, Protocol):
        return asked
    if isinstance(asked, str):
        return create_protocol(asked)
    if len(asked) != 1:
        raise OodscopeError(f"a protocol with options is {{name: {{option: value}}}}, not {dict(asked)!r}")
    (name, options), *_ = asked.items()
    return create_protocol(name, **(options or {}))
