"""Defaults: whether the parameters of an entry are those that the registry gives to everybody."""

from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.detectors.base import parameters_json
from oodscope.detectors.registry import create_detector
from oodscope.leaderboard.records.entry import Entry


def by_hand(entry: Entry) -> bool:
    """Whether an entry has other parameters than the registry's, beyond those that its search may choose.

    Of a detector that is not in the registry nobody but its author knows the defaults, so it stands there too.
    """
    try:
        made = create_detector(_registered(entry))
        expected: dict[str, Any] = parameters_json(made)
    except (OodscopeError, TypeError):
        return entry.tuning == "default"
    # a search may change what is in the grid, and nothing else
    free = () if entry.tuning == "default" else tuple(made.grid)
    params = entry.detector.params
    return any(params.get(name) != expected.get(name) for name in {*params, *expected} - set(free))


def _registered(entry: Entry) -> str:
    """The name under which the registry makes it: ``react`` with the logit score ``msp`` is ``react+msp``."""
    score = entry.detector.params.get("logit_score")
    inner = score.get("detector") if isinstance(score, dict) else None
    return f"{entry.detector.name}+{inner}" if isinstance(inner, str) else entry.detector.name
