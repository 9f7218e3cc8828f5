"""Three statements about one table, never mixed: on these classes, on other OOD classes, for other networks.

The first draws images anew, the second whole OOD classes where a set's classes are sampled (and images elsewhere), the
third networks too. Each has its own values, ranks and candidates for the best.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from oodscope.metrics.catalog import AUROC
from oodscope.metrics.comparison.functionals import weigh_sets
from oodscope.metrics.comparison.influence import (
    Estimates,
    SetUnits,
    half_a_failure,
    join_sets,
    place_sets,
    refusal,
)
from oodscope.metrics.comparison.rates import is_rate, rate_sets
from oodscope.metrics.comparison.simultaneous import Signs, compare_pairs, may_be_best, rank_intervals
from oodscope.metrics.metric import Metric, Population
from oodscope.protocols.separation import Separation

Statement = Literal["images", "classes", "networks"]

POPULATION_WORDS: dict[Statement, str] = {
    "images": "other images of these classes, this network",
    "classes": "other OOD classes, this network",
    "networks": "other networks of this recipe",
}
"""The population that a sentence speaks about."""


@dataclass(frozen=True)
class Statements:
    """The detectors of one table under one metric, and what may be said of them.

    Parameters
    ----------
    separations : the scores of each detector, images in one order.
    metric : AUROC and rates at a quantile (FPR95) have their contributions in closed form; any other needs
        ``Metric.value``.
    """

    separations: Mapping[str, Separation]
    metric: Metric = AUROC
    seed: int = 0
    _joined: dict[tuple[str, ...], Estimates] = field(default_factory=dict, repr=False)

    @property
    def _any(self) -> Separation:
        return next(iter(self.separations.values()))

    def refusal(self, names: Iterable[str]) -> str:
        """Why there is no statement about other OOD classes on these sets; empty where there is one."""
        populations = self._any.populations
        if not self._any.testable:
            return "a single image has no spread"
        if not any(populations[name] == "sampled" for name in names):
            return "no set has classes that were sampled from many"
        reasons = [refusal(name, self._any.ood_classes.get(name), populations[name]) for name in names]
        return "; ".join(filter(None, reasons))

    def images_only(self, names: Iterable[str]) -> list[str]:
        """The sets that a statement about other classes takes as they are, with the noise of their images."""
        return [name for name in names if self._any.populations[name] != "sampled"]

    @cached_property
    def units(self) -> Mapping[str, SetUnits]:
        """The contributions to a statement about other classes, set by set."""
        return units_of(self.separations, self.metric, self._any.populations, self.seed)

    def classes(self, names: Sequence[str], weights: Sequence[float] | None = None) -> Estimates:
        """The (weighted) mean over some sets for *other OOD classes*."""
        key = (*names, *map(str, weights or ()))
        if key not in self._joined:
            least = half_a_failure(self._any.placements(names))
            self._joined[key] = join_sets([self.units[name] for name in names], least, weights)
        return self._joined[key]


def units_of(
    separations: Mapping[str, Separation], metric: Metric, populations: Mapping[str, Population], seed: int
) -> dict[str, SetUnits]:
    """What every unit of every set contributes to each detector; without populations the units are images."""
    first = next(iter(separations.values()))
    if metric.name == AUROC.name:
        return place_sets(
            np.stack([each.negative for each in separations.values()]),
            {name: np.stack([each.ood[name] for each in separations.values()]) for name in first.ood},
            first.ood_classes,
            populations,
            first.class_names,
            {
                name: np.stack([each.placements([name]).of_ood[name] for each in separations.values()])
                for name in first.ood
            },
        )
    columns = {name: [each.columns()[name] for each in separations.values()] for name in first.ood}
    if is_rate(metric):
        return rate_sets(metric, columns, populations, first.class_names)
    return weigh_sets(metric, columns, populations, first.class_names, seed=seed)


def rank_fields(estimates: Estimates, higher: bool, prefix: str = "") -> list[dict[str, int]]:
    """The fields of a measurement that say which ranks a detector may have and whether it may be best."""
    signs = Signs(estimates)
    ranks = rank_intervals(estimates, higher=higher, table=compare_pairs(estimates, signs=signs))
    first = may_be_best(estimates, higher=higher, signs=signs)
    # who is significantly worse than another cannot be best; the two procedures may differ at their margins
    best = [int(may and low == 1) for may, (low, _) in zip(first, ranks)]
    return [
        {f"{prefix}rank_low": low, f"{prefix}rank_high": high, f"{prefix}may_be_best": may}
        for (low, high), may in zip(ranks, best)
    ]
