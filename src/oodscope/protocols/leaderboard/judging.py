"""The protocols as the board applies them: the same code as ``evaluate``, by name and version."""

from collections.abc import Callable, Iterable, Mapping

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.protocols.base import PROTOCOLS
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.measuring import measure as measure_attack
from oodscope.runs.attack.run import PROTOCOL as ADVERSARIAL

_VERSIONS = {**{name: each.version for name, each in PROTOCOLS.items()}, ADVERSARIAL: 1}
_JUDGES: Mapping[str, Callable[[ScoreTable], Measurements]] = {
    **{name: each.measure for name, each in PROTOCOLS.items()},
    ADVERSARIAL: measure_attack,
}


def protocol_versions(names: Iterable[str]) -> dict[str, int]:
    """The versions that this package judges by."""
    return {name: _version(name) for name in names}


def judge(scores: ScoreTable, protocols: Mapping[str, int]) -> Measurements:
    """Every number of these protocols from the scores alone; another version than ours is refused."""
    found = Measurements()
    for name, version in protocols.items():
        if version != _version(name):
            raise DataError(f"protocol {name} version {version}; this version of oodscope judges by {_version(name)}")
        try:
            found = found + _JUDGES[name](scores)
        except (ArithmeticError, LookupError, ValueError) as error:
            # scores of strangers may be odd in ways that no protocol foresaw; one entry must not stop a board
            raise DataError(f"protocol {name} cannot judge these scores: {type(error).__name__}: {error}") from error
    return found


def _version(name: str) -> int:
    if name not in _VERSIONS:
        raise UnknownNameError("protocol", name, _VERSIONS, f"Judged here: {', '.join(_VERSIONS)}")
    return _VERSIONS[name]
