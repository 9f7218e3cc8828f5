"""Protocols by name: those of the package, of installed packages, and those registered in code."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from oodscope.base.catalog import catalog
from oodscope.base.errors import OodscopeError, UsageError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable


class ProtocolRegistry(Registry[Protocol]):
    """Protocols by name. The metrics of one that is asked for are known from then on: a protocol brings its own."""

    def _checked(self, name: str, cls: object) -> type[Protocol]:
        checked = super()._checked(name, cls)
        for metric in checked.metrics:
            if metric.name not in METRICS:
                METRICS.register(metric.name, metric)
        return checked


PROTOCOLS = ProtocolRegistry("protocol", Protocol)  # type: ignore[type-abstract]


def create_protocol(name: str, **options: Any) -> Protocol:
    """The protocol called ``name`` with these options; unknown names and options suggest the nearest."""
    cls = PROTOCOLS.get(name)
    known = list(inspect.signature(cls).parameters)
    for key in options:
        if key not in known:
            near = did_you_mean(key, known) or f" It has: {', '.join(known) or 'none'}"
            raise UsageError(f"protocol {name}: no option {key!r}.{near}")
    return cls(**options)


def stored_protocol(scores: ScoreTable, name: str) -> Protocol:
    """The protocol with the options that the scores were made for, so that they can be measured again."""
    return create_protocol(name, **scores.context.protocols.get(name, {}))


def protocol_of(row_name: str) -> type[Protocol]:
    """The protocol that measured a row: ``full_spectrum:balanced`` and ``attack_budget`` are views of one.

    Rows may come from a protocol that is not installed here; they are shown as those of a protocol that ranks images.
    """
    return PROTOCOLS.get(_base_name(row_name)) if known_protocol(row_name) else _Elsewhere


class _Elsewhere(Protocol):
    """A protocol of which only rows are known."""

    name = title = summary = ""
    metrics, headline = RANKING, ("auroc",)

    def measure(self, scores: ScoreTable) -> Measurements:
        raise OodscopeError("the protocol is not installed here, so its numbers cannot be measured again")


def known_protocol(row_name: str) -> bool:
    """Whether the protocol that measured a row is installed here."""
    return _base_name(row_name) in PROTOCOLS


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once: protocols of the package in the order of the catalogue, then the others as they come."""
    given = list(dict.fromkeys(names))
    return [name for name in dict.fromkeys([*catalog("protocols"), *given]) if name in given]


def described_protocols() -> list[tuple[str, str]]:
    """Title and summary of every protocol, those of installed packages last."""
    others = [PROTOCOLS.get(name) for name in PROTOCOLS if name not in catalog("protocols")]
    own = [(each["title"], each["summary"]) for each in catalog("protocols").values()]
    return [*own, *((each.title, each.summary) for each in others)]


def _base_name(row_name: str) -> str:
    name = row_name.partition(":")[0]
    if name in PROTOCOLS:
        return name
    return max((known for known in PROTOCOLS if name.startswith(f"{known}_")), key=len, default=name)


def headline_metrics(row_name: str, measured: Measurements | None = None) -> tuple[str, ...]:
    """What a reader of this protocol looks at first; the first of them ranks the detectors.

    Parameters
    ----------
    measured : of the rows at hand; a headline that none of them has is left out, as long as another has some.
    """
    headline = protocol_of(row_name).headline
    if measured is None:
        return headline
    present = {row.metric for row in measured if row.protocol == row_name}
    return tuple(metric for metric in headline if metric in present) or headline


Asked = str | Protocol | Mapping[str, Any]
"""A protocol as people ask for it: its name, an object, or ``{name: {option: value}}`` as in a YAML file."""


def read_protocols(asked: Asked | Iterable[Asked]) -> list[Protocol]:
    """The protocols that were asked for, each once; checked before anything is opened."""
    given = [asked] if isinstance(asked, (str, Protocol, Mapping)) else list(asked)
    protocols = [_read(each) for each in given]
    if not protocols:
        raise UsageError("no protocol given; use protocols=['standard']")
    names = [each.name for each in protocols]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"protocol {name} is asked for twice")
    return protocols


def _read(asked: Asked) -> Protocol:
    if isinstance(asked, Protocol):
        if asked.name not in PROTOCOLS:
            # its rows are shown by what its class says of them
            PROTOCOLS.register(asked.name, type(asked))
        return asked
    if isinstance(asked, str):
        return create_protocol(asked)
    if len(asked) != 1:
        raise UsageError(f"a protocol with options is {{name: {{option: value}}}}, not {dict(asked)!r}")
    (name, options), *_ = asked.items()
    return create_protocol(name, **(options or {}))
