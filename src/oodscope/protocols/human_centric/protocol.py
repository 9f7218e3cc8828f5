r"""Human-centric evaluation: keep what the classifier gets right, reject what it gets wrong.

Zhu et al., "Rethinking Out-of-Distribution Detection From a Human-Centric Perspective" (arXiv 2211.16778), and the
selective prediction that it joins. A threshold keeps 95 or 99 % of a threshold sample; at it, the detection error rate
counts wrong decisions, on OOD images (label shift) as on images of known classes, clean or corrupted (input shift).

The paper takes the threshold from correctly classified training images (``train_correct``), which compares detectors
at different operating points, because networks fit their training images and detectors show it differently. The
headline therefore is ``val_correct``, where all detectors reject the same share of correct new images, the paper's
rule beside it, and AUGRC, which needs no threshold. A source whose images the benchmark lacks is left out and named.
Every row carries the share of correct ``id_test`` images that its threshold rejects. A detector that learns from
``id_val`` itself (``klm``) has seen the images of that threshold: its rows there are marked and not ranked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from oodscope.base.config import StrictModel, parse_declared
from oodscope.base.errors import DataError, UsageError
from oodscope.base.paper import Paper
from oodscope.data.benchmark import ID_ROLES, Benchmark
from oodscope.data.imageset import UNLABELLED
from oodscope.document.figure import Figure, Position
from oodscope.metrics.catalog import AUROC as RANKED
from oodscope.metrics.catalog import FPR95_ID_POSITIVE, REJECTION, SOURCES
from oodscope.metrics.interval import REPLICATES
from oodscope.metrics.metric import MEAN
from oodscope.protocols.base import Protocol
from oodscope.protocols.human_centric.figures import der_curves, der_over_share, has_share, risk_coverage
from oodscope.protocols.human_centric.rows import baseline_rows, conventional_rows, rejection_rows, selective_estimates
from oodscope.protocols.human_centric.sets import ALL, SHIFTS, estimate_rows, labelled_sets
from oodscope.protocols.human_centric.training import divided, training_rows
from oodscope.protocols.ranking import measure_accuracy
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

PLOTTED_SETS = 2
"""Of each role, in plots of DER and risk; the tables hold all."""

PLOTTED_DETECTORS = 5
"""Curves in one plot of DER or risk, which lie closer together than ROC curves."""

_WITHOUT_DETECTOR = {"der_accept_all": "accept all", "der_reject_all": "reject all"}


class Prices(StrictModel):
    """What the two mistakes of a detector cost, in any unit."""

    false_rejection: float = Field(default=1.0, ge=0)
    false_acceptance: float = Field(default=1.0, ge=0)


class HumanCentric(Protocol):
    """Every rate of keeping and rejecting, per set and as means over all sets, label shift and input shift.

    Parameters
    ----------
    threshold_split : fit detectors on one half of ``id_train``, class by class, and take the training thresholds from
        the other. A detector that remembers its training images (KNN holds them, MDS and ViM their statistics) finds
        them more familiar than any new image, and a threshold taken from them rejects too much. Every protocol of the
        run then sees detectors fitted on half of the images.
    train_rows : at most so many training images are scored for thresholds, drawn at random. With 50,000 the share
        kept at "99" is known to 0.1 points.
    costs : prices of the two mistakes; with them, rows of the mean cost are measured too.

    Examples
    --------
    >>> from oodscope.protocols.human_centric.protocol import HumanCentric
    >>> human = HumanCentric(threshold_split=True)
    >>> oods.evaluate(clf, bench, ["msp"], protocols=[human]).table().facts["metric"]
    'der95_val_correct'
    """

    name, title = "human_centric", "Human-centric"
    summary = "Keep what the classifier gets right, reject what it gets wrong (DER, AUGRC)."
    paper = Paper(
        "Rethinking Out-of-Distribution Detection From a Human-Centric Perspective",
        "Zhu et al.",
        "arXiv 2211.16778",
    )
    metrics, headline = (RANKED, FPR95_ID_POSITIVE, *REJECTION), ("der95_val_correct", "der95_train_correct", "augrc")
    position = 3
    roles = ("id_train", "id_val")
    negatives = ()
    classification = True
    groups = {ALL: ("id_test", "csid", "near", "far"), **SHIFTS}

    def __init__(
        self,
        threshold_split: bool = False,
        train_rows: int = 50_000,
        costs: Prices | Mapping[str, float] | None = None,
    ) -> None:
        if train_rows < 1:
            raise UsageError(f"human_centric: train_rows must be at least 1; it is {train_rows}")
        self.threshold_split = threshold_split
        self.train_rows = train_rows
        if not (costs is None or isinstance(costs, Prices)):
            costs = parse_declared(Prices, costs, "human_centric: costs")
        self.costs = costs

    def check(self, benchmark: Benchmark) -> None:
        filled = {role for role, _ in benchmark.members()}
        if not filled.intersection(self.roles):
            raise DataError(
                "human_centric needs id_train or id_val: labelled images whose scores set its thresholds; "
                f"benchmark {benchmark.name!r} has neither"
            )
        for role, images in benchmark.members():
            if role in ID_ROLES and (images.labels == UNLABELLED).any():
                raise DataError(f"human_centric needs the labels of ID images; set {images.name!r} has none")

    def prepare(self, benchmark: Benchmark, seed: int) -> Benchmark:
        return divided(benchmark, split=self.threshold_split, most=self.train_rows, seed=seed)

    def training_rows(self, labels: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return training_rows(labels, split=self.threshold_split, most=self.train_rows, seed=seed)

    def notes(self, scores: ScoreTable) -> list[str]:
        notes = [
            f"human_centric: no {role}, so no threshold {' or '.join(missing)}"
            for role in self.roles
            if not scores.sets(role)
            for missing in [[source for source in SOURCES if role == f"id_{source.split('_')[0]}"]]
        ]
        rows = scores.context.training_rows
        if self.threshold_split and rows is not None:
            notes.append(
                f"detectors were fitted on {rows['fitted']} images of id_train, "
                f"thresholds taken from {rows['scored']} others"
            )
        return notes

    def measure(self, scores: ScoreTable) -> Measurements:
        if not scores.sets("id_test"):
            raise DataError("human_centric needs an id_test set; the score table has none")
        for name in (name for role in ID_ROLES for name in scores.sets(role)):
            if not scores.classified(name):
                raise DataError(f"human_centric needs labels and predictions of ID images; set {name!r} lacks them")
        sets = labelled_sets(scores)
        context: dict[str, Any] = {**scores.context.row(), "protocol": self.name}
        rows: list[Measurement] = list(baseline_rows(sets, context))
        contexts = {each: {**context, **scores.context.row(each)} for each in scores.detectors}
        prices = None if self.costs is None else self.costs.model_dump()
        for detector, shared in contexts.items():
            rows += rejection_rows(scores, detector, sets, shared, prices)
            rows += conventional_rows(scores, detector, sets, shared)
        replicates = REPLICATES[scores.context.intervals]
        for detector, found in selective_estimates(scores, sets, scores.context.seed or 0, replicates).items():
            for metric, estimates in found.items():
                rows += estimate_rows(contexts[detector], metric, sets, estimates)
        return measure_accuracy(scores, self.name, ("id_test", "csid")) + Measurements(rows)

    def figures(self, scores: ScoreTable, detectors: Sequence[str], positions: Mapping[str, Position]) -> list[Figure]:
        sets = [name for role in self.groups[ALL] for name in scores.sets(role)[:PLOTTED_SETS]]
        leading = list(detectors)[:PLOTTED_DETECTORS]
        drawn = [draw(scores, name, leading, positions) for name in sets for draw in (der_curves, risk_coverage)]
        outliers = [name for role in SHIFTS["label_shift"] for name in scores.sets(role)]
        if outliers and has_share(scores):
            drawn.append(der_over_share(scores, outliers[0], leading, positions))
        return drawn

    @classmethod
    def baselines(cls, measurements: Measurements, metric: str) -> list[str]:
        if not metric.startswith("der"):
            return []
        parts = []
        for name, words in _WITHOUT_DETECTOR.items():
            means = measurements.filter(metric=name, set=MEAN)
            if means:
                said = ", ".join(f"{100 * row.value:.2f} ({row.group} mean)" for row in means)
                parts.append(f"{words} {said}")
        return [f"Without a detector: {'; '.join(parts)}."] if parts else []
