"""Exposure: which test images a network has met before. A property of (model, set), shown in every row.

Images that a network was trained on look more in-distribution than any other: with training rows as ID test set,
MSP against CIFAR-100 rises from .874 to .943. So what is known is said, not judged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from oodscope.metrics.catalog import MEAN
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

_SPANNED = {
    "label_shift": ("near", "far"),
    "input_shift": ("id_test", "csid"),
    "all": ("id_test", "csid", "near", "far"),
}
"""Groups that take the sets of several roles together."""


def id_test_alone(scores: ScoreTable, row: Measurement) -> list[str]:
    """The sets that count as in-distribution in most protocols."""
    return scores.sets("id_test")


def flag_exposure(
    measurements: Measurements, scores: ScoreTable, negatives: Callable[[ScoreTable, Measurement], Sequence[str]]
) -> Measurements:
    """The same rows, each with what is known of the sets that it was measured on.

    Parameters
    ----------
    negatives : the sets whose images counted as in-distribution in a row.
    """
    known: Mapping[str, str] = scores.metadata.get("exposure", {})
    if not known:
        return measurements
    members = {name: [name] for name in scores.sets()}
    groups = {
        group: [name for role in _SPANNED.get(group, (group,)) for name in scores.sets(role)]
        for group in measurements.distinct("group")
    }

    def said(row: Measurement) -> str:
        below = negatives(scores, row)
        # a set, the sets of a group, or several in-distribution sets together, such as "pooled"
        own = groups[row.group] if row.set == MEAN else members.get(row.set, below)
        return _said(dict.fromkeys([*(below if row.detector else ()), *own]), known)

    return Measurements(replace(row, exposure=said(row)) for row in measurements)


def _said(names: Iterable[str], known: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {known[name]}" for name in names if name in known)
