"""Protocol: what is measured of stored scores, and how its numbers are named, grouped and shown."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.data.benchmark import Benchmark, Role
from oodscope.document.figure import Figure, Position
from oodscope.metrics.metric import MEAN, Metric
from oodscope.results.measurement import RANKS, Measurement, Measurements
from oodscope.results.scoretable import ScoreTable


class Protocol(ABC):
    """One way to evaluate detectors: a pure function from stored scores to measurements.

    A subclass names its metrics and gives :meth:`measure`; words, tables, rankings and pages come from what it says of
    itself. Options are parameters of its constructor, kept under their own names as with detectors::

        class OpenSet(Protocol):
            name, title, summary = "open_set", "Open-set recognition", "classify ID images and reject OOD images"
            metrics, headline = (OSCR,), ("oscr",)

            def measure(self, scores: ScoreTable) -> Measurements:
                return rank_metrics(scores, self)

    Attributes
    ----------
    name : as in configurations and measurements.
    title : how pages call it.
    summary : one line for a reader.
    paper : the publication that proposed it; none for an own protocol.
    version : of its numbers; a change after which the same scores give others is a new version.
    metrics : what it measures.
    headline : the names of the metrics that a reader looks at first; the first of them ranks the detectors.
    roles : what it wants scored beside the test sets.
    negatives : the roles that count as in-distribution where it ranks images; empty if it does not rank.
    groups : the roles whose sets each of its groups takes together; they lead its tables in this order.
    unranked : groups in which no detector can win.
    classification : whether it needs a prediction for every ID image, which a network without classes has not.
    position : where it stands among others on pages and in lists.

    Examples
    --------
    >>> from oodscope.metrics.catalog import RANKING
    >>> from oodscope.protocols.ranking import rank_metrics
    >>> class NearOnly(oods.Protocol):
    ...     name, title, summary = "near_only", "Near only", "Separate ID from near-OOD images."
    ...     metrics, headline, groups = RANKING, ("auroc",), {"near": ("near",)}
    ...     def measure(self, scores): return rank_metrics(scores, self)
    >>> oods.evaluate(clf, bench, ["msp"], [NearOnly()]).measurements.distinct("group")
    ['id', 'near']
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[Paper | None] = None
    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]]
    headline: ClassVar[tuple[str, ...]]
    roles: ClassVar[tuple[Role, ...]] = ()
    negatives: ClassVar[tuple[Role, ...]] = ("id_test",)
    groups: ClassVar[Mapping[str, tuple[Role, ...]]] = {"near": ("near",), "far": ("far",)}
    unranked: ClassVar[tuple[str, ...]] = ("csid", "id")
    classification: ClassVar[bool] = False
    position: ClassVar[int] = 100

    @abstractmethod
    def measure(self, scores: ScoreTable) -> Measurements:
        """Every number of the protocol, from the stored scores alone."""

    def check(self, benchmark: Benchmark) -> None:
        """Refuse a benchmark that lacks one of the roles, before anything is extracted."""
        filled = {role for role, _ in benchmark.members()}
        for role in self.roles:
            if role not in filled:
                raise DataError(
                    f"protocol {self.name} needs {role}: labelled images whose scores set its thresholds; "
                    f"benchmark {benchmark.name!r} has none"
                )

    def prepare(self, benchmark: Benchmark, seed: int) -> Benchmark:
        """The benchmark as the protocol wants it scored, such as with training images divided."""
        return benchmark

    def training_rows(self, labels: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Of ``id_train``, the rows that :meth:`prepare` fits on and those that it scores; None where it scores none.

        Whoever verifies scores by activations alone draws the rows again.
        """
        return None

    def notes(self, scores: ScoreTable) -> list[str]:
        """What a reader of the record should know of how it was applied."""
        return []

    def figures(self, scores: ScoreTable, detectors: Sequence[str], positions: Mapping[str, Position]) -> list[Figure]:
        """Plots for the report that this protocol adds to those of every evaluation.

        Parameters
        ----------
        detectors : which to draw, in the order in which the first table ranks them.
        positions : of the detectors on the page; a detector has the colour of its position in all plots.
        """
        return []

    def negative_sets(self, scores: ScoreTable, row: Measurement) -> Sequence[str]:
        """The sets whose images counted as in-distribution in one of its rows."""
        return [name for role in self.negatives or ("id_test",) for name in scores.sets(role)]

    @classmethod
    def baselines(cls, measurements: Measurements, metric: str) -> list[str]:
        """Notes below a table of this metric: what is reached without any detector."""
        return []

    @final
    def measurements(self, scores: ScoreTable) -> Measurements:
        """Every number, each with what is known of images that the network had met before."""
        measured = self.measure(scores)
        if scores.context.intervals == "none":
            measured = Measurements(replace(row, **_NO_INTERVAL) for row in measured)
        return _flag_exposure(self, measured, scores)

    @property
    @final
    def options(self) -> dict[str, Any]:
        """The parameters of its constructor as plain values; they travel with the scores."""
        given = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        return {key: each.model_dump() if isinstance(each, BaseModel) else each for key, each in given.items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.options.items())})"


_NO_INTERVAL: dict[str, Any] = {
    **dict.fromkeys(("low", "high", "level", "class_low", "class_high", *RANKS)),
    "interval": "none",
}
"""What a row says where no intervals were asked for."""


def _flag_exposure(protocol: Protocol, measurements: Measurements, scores: ScoreTable) -> Measurements:
    """The same rows, each with what is known of the sets that it was measured on.

    Images that a network was trained on look more in-distribution than any other: with training rows as ID test set,
    MSP against CIFAR-100 rises from .874 to .943. So what is known is stated in every row, not judged.
    """
    known = scores.context.exposure
    if not known:
        return measurements
    members = {name: [name] for name in scores.sets()}
    groups = {
        group: [name for role in protocol.groups.get(group, (group,)) for name in scores.sets(role)]
        for group in measurements.distinct("group")
    }

    def flag(row: Measurement) -> str:
        below = protocol.negative_sets(scores, row)
        # a set, the sets of a group, or several in-distribution sets together, such as "pooled"
        own = groups[row.group] if row.set == MEAN else members.get(row.set, below)
        sets = dict.fromkeys([*(below if row.detector else ()), *own])
        return "; ".join(f"{name}: {known[name]}" for name in sets if name in known)

    return Measurements(replace(row, exposure=flag(row)) for row in measurements)
