"""Defaults: whether the parameters of an entry are those that the registry gives to everybody."""

import sys
from typing import Any

from oodscope.base.catalog import catalog, plugins
from oodscope.base.errors import OodscopeError
from oodscope.leaderboard.records.entry import Entry


def by_hand(entry: Entry) -> bool:
    """Whether an entry has other parameters than the registry's, beyond those that its search may choose.

    Of a detector that is not in the registry nobody but its author knows the defaults, so it stands there too.
    """
    known = _of_the_package(entry) or _of_others(entry)
    if known is None:
        return entry.tuning == "default"
    expected, grid, networks = known
    # a search may change what is in the grid, and nothing else; a network is trained, not chosen
    free = networks if entry.tuning == "default" else (*grid, *networks)
    params = entry.detector.params
    return any(params.get(name) != expected.get(name) for name in {*params, *expected} - set(free))


Defaults = tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]
"""Parameters as plain JSON, the names of those that a search may change, and of those that name a network."""


def _of_the_package(entry: Entry) -> Defaults | None:
    """As the catalogue says, which is written from the classes: a server that asks it never imports torch."""
    name, inner = entry.detector.name, _logit_score(entry)
    known, replaced = catalog("detectors"), plugins("detectors")
    if name not in known or name in replaced or inner in replaced:
        return None
    parameters: dict[str, Any] = known[name]["parameters"]
    if inner is not None:
        if known[name]["kind"] != "rectifier" or inner not in known or known[inner]["kind"] != "logit score":
            return None
        parameters = {**parameters, "logit_score": {"detector": inner, "params": known[inner]["parameters"]}}
    return parameters, tuple(known[name]["grid"]), tuple(known[name].get("networks", ()))


def _of_others(entry: Entry) -> Defaults | None:
    """As the class says that an installed package or code registered; None where nobody did, or it cannot be made."""
    inner = _logit_score(entry)
    installed = {entry.detector.name, inner} & set(plugins("detectors"))
    if not installed and "oodscope.detectors.registry" not in sys.modules:  # then no code has registered anything
        return None
    from oodscope.detectors.base import parameters_json
    from oodscope.detectors.registry import create_detector

    try:
        # ``react`` with the logit score ``msp`` is made by the name ``react+msp``
        made = create_detector(entry.detector.name if inner is None else f"{entry.detector.name}+{inner}")
        return parameters_json(made), tuple(made.grid), tuple(made.networks)
    except (OodscopeError, TypeError):
        return None


def _logit_score(entry: Entry) -> str | None:
    """The name of the logit score inside a rectifier, where an entry names one."""
    score = entry.detector.params.get("logit_score")
    inner = score.get("detector") if isinstance(score, dict) else None
    return inner if isinstance(inner, str) else None
