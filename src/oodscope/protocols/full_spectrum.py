"""Full-spectrum OOD detection: covariate-shifted ID images are negatives, as ``id_test`` is.

Yang et al., "Full-Spectrum Out-of-Distribution Detection" (IJCV 2023), and OpenOOD v1.5. A detector that
takes a new font, or blur, for a new class pays for it here. What is a negative is a choice, and each choice is a
protocol name of its own:

- ``full_spectrum``: all negatives pooled, as the papers do, so that a large covariate-shifted set weighs more than a
  small one. Its group ``csid`` holds the AUROC of ``id_test`` against each covariate-shifted set: how strongly the
  detector reacts to the shift itself. One half means no reaction.
- ``full_spectrum:balanced``: every negative set weighs the same.
- ``full_spectrum:csid=NAME``: the set NAME alone is negative.

Full-spectrum wants a covariate-shifted image kept even where the classifier gets it wrong; a rejection measure such
as DER wants just that image rejected. The two disagree by design, so read them side by side and do not average them.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.metrics.catalog import RANKING
from oodscope.metrics.metric import MEAN
from oodscope.metrics.ranking.crossed import crossed_auroc
from oodscope.protocols.base import Protocol
from oodscope.protocols.ranking import LEVEL, measure_accuracy, measure_separation
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

POOLED = "full_spectrum"
BALANCED = f"{POOLED}:balanced"

_IDENTITY = ("run", "benchmark", "benchmark_version", "model", "recipe", "seed", "detector", "params", "tuning")
_COSTS = ("fit_seconds", "microseconds_per_image", "peak_mib", "passes")


class FullSpectrum(Protocol):
    """Every ranking metric with pooled negatives; AUROC and accuracy also balanced and for each shifted set."""

    name, title = POOLED, "Full spectrum"
    summary = "The same, with covariate-shifted ID images as negatives too."
    paper = Paper("Full-Spectrum Out-of-Distribution Detection", "Yang, Zhou & Liu", "arXiv 2204.05306")
    position = 2
    metrics, headline = RANKING, ("auroc",)
    negatives = ("id_test", "csid")

    def measure(self, scores: ScoreTable) -> Measurements:
        if not scores.sets("csid"):
            raise DataError("full_spectrum needs a csid set (covariate-shifted ID images); this benchmark has none")
        accuracies = measure_accuracy(scores, POOLED, self.negatives)
        pooled = accuracies + measure_separation(scores, POOLED, self.negatives, self.metrics)
        rows = _aurocs(pooled, scores, POOLED, "csid", scores.sets("id_test"))
        for view, negatives in _views(scores).items():
            if all(scores.classified(name) for name in negatives):
                rows.append(_accuracy(accuracies, view, negatives))
            for group in self.groups:
                rows += _aurocs(pooled, scores, view, group, negatives)
        return pooled + Measurements(rows)

    def negative_sets(self, scores: ScoreTable, row: Measurement) -> Sequence[str]:
        if row.protocol == POOLED and row.group == "csid":
            return scores.sets("id_test")
        return _views(scores).get(row.protocol, [*scores.sets("id_test"), *scores.sets("csid")])


def _views(scores: ScoreTable) -> dict[str, list[str]]:
    """Which sets are negative under each name but the pooled one."""
    shifted = scores.sets("csid")
    return {BALANCED: [*scores.sets("id_test"), *shifted]} | {f"{POOLED}:csid={name}": [name] for name in shifted}


def _aurocs(
    pooled: Measurements, scores: ScoreTable, view: str, group: str, negatives: Sequence[str]
) -> list[Measurement]:
    """The AUROC of each set of a group and their mean, for every detector; every negative set weighs the same."""
    names = scores.sets(group)
    wanted: Mapping[str, Sequence[str]] = {**{name: [name] for name in names}, **({MEAN: names} if names else {})}
    rows = []
    for detector in scores.detectors:
        shared = _shared(pooled.filter(detector=detector)[0])
        below = [scores.scores(detector, set=name) for name in negatives]
        above = {name: scores.scores(detector, set=name) for name in names}
        for name, members in wanted.items():
            value, interval = crossed_auroc(below, [above[member] for member in members], LEVEL)
            rows.append(
                Measurement(
                    **shared,
                    protocol=view,
                    group=group,
                    set=name,
                    metric="auroc",
                    value=value,
                    low=interval.low,
                    high=interval.high,
                    interval=interval.method,
                    level=interval.level,
                    n_id=sum(map(len, below)),
                    n_ood=sum(len(above[member]) for member in members),
                )
            )
    return rows


def _accuracy(measured: Measurements, view: str, names: Sequence[str]) -> Measurement:
    r"""The unweighted mean of the accuracies of some sets.

    Its ends recover the variances of independent proportions from their Wilson intervals (Zou & Donner, Statistics
    in Medicine 2008): with the mean :math:`\bar p` of K sets,
    :math:`\bar p - K^{-1} (\sum_k (p_k - l_k)^2)^{1/2}` and likewise above.
    """
    own = [row for name in names for row in measured.filter(set=name)]
    value = sum(row.value for row in own) / len(own)
    below = sqrt(sum((row.value - (row.low or 0.0)) ** 2 for row in own)) / len(own)
    above = sqrt(sum(((row.high or 0.0) - row.value) ** 2 for row in own)) / len(own)
    alone = len(own) == 1
    return Measurement(
        **_shared(own[0]),
        protocol=view,
        group=own[0].group if alone else "id",
        set=own[0].set if alone else "balanced",
        metric="accuracy",
        value=value,
        low=value - below,
        high=value + above,
        interval=own[0].interval if alone else "wilson-recovered",
        level=own[0].level,
        n_id=sum(row.n_id or 0 for row in own),
    )


def _shared(row: Measurement) -> dict[str, Any]:
    return {name: getattr(row, name) for name in (*_IDENTITY, *_COSTS)}
