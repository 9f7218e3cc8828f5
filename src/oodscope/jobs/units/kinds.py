"""The kinds of units, by name: what does them is imported when the first of its kind is done."""

from collections.abc import Callable, Mapping
from typing import Any

from oodscope.base.errors import UnknownNameError
from oodscope.base.registry import load_target
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Unit

KINDS = {
    "train": "oodscope.jobs.units.evaluation:train",
    "extract": "oodscope.jobs.units.evaluation:extract",
    "score": "oodscope.jobs.units.evaluation:score",
    "evaluate": "oodscope.jobs.units.study:evaluate",
    "decode": "oodscope.jobs.units.together:decode",
    "embed": "oodscope.jobs.units.crossval:embed",
    "fold": "oodscope.jobs.units.crossval:fold",
    "search": "oodscope.jobs.units.attack:search",
    "rerun": "oodscope.jobs.units.rerun:rerun",
}


def do(unit: Unit, plan: WorkPlan) -> dict[str, Any]:
    """Do a unit, whatever its kind; what it says is recorded beside who did it and how long it took."""
    if unit.kind not in KINDS:
        raise UnknownNameError("kind of unit", unit.kind, KINDS, f"Known: {', '.join(KINDS)}")
    function: Callable[[Mapping[str, Any], WorkPlan], dict[str, Any]] = load_target(
        "kind of unit", unit.kind, KINDS[unit.kind]
    )
    return function(unit.spec, plan)
