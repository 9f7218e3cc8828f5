"""One metric of a study by cross-validation: the truth, the repetitions, and how well these find it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.comparison.agreement import (
    Directions,
    HitsAndErrors,
    directions,
    hits_and_errors,
    significance_counts,
)
from oodscope.metrics.comparison.cells import CellTests, PairTests, cell_tests, pair_tests
from oodscope.metrics.comparison.many_sets import FEWEST_SETS, CriticalDifference, critical_difference, friedman
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import PairedTest, corrected_t
from oodscope.metrics.crossval.class_groups import class_group_intervals
from oodscope.metrics.crossval.class_units import FEWEST_CLASSES, class_interval, class_tests, mean_class_interval
from oodscope.metrics.crossval.convergence import RunningMean, running_mean
from oodscope.metrics.crossval.hold_outs import ErrorRatio, error_ratio
from oodscope.metrics.crossval.variance import VarianceShares, variance_components
from oodscope.runs.crossval.run import CrossCell, CrossValidationTable

Numbers = NDArray[np.float64]

CLASS_METRIC = "auroc"
"""The metric of all outliers together that is the mean of those of their classes."""


@dataclass(frozen=True)
class MetricStudy:
    """Every statistic of one metric, computed when it is asked for.

    Parameters
    ----------
    hold_outs : ``[repetition, detector, cell]``: the repeated hold-out; empty where none was made.
    folds : ``[repetition, fold, detector, cell]``: the cross-validations; empty where none was made.
    numbers : which repetitions of the table the cross-validations are.
    test, auto_parametric : how detectors are compared over cells; see :func:`cell_tests`.
    rivals : ``[repetition, detector, cell]``: where the truth is of other images, the hold-outs of the images that the
        cross-validations are of; empty otherwise.
    class_values : of each cell ``[class, detector]``, the value of each OOD class averaged over repetitions; empty
        where classes are not known by themselves.
    """

    metric: str
    detectors: tuple[str, ...]
    cells: tuple[CrossCell, ...]
    hold_outs: Numbers
    folds: Numbers
    numbers: tuple[int, ...]
    test: str = "wilcoxon"
    auto_parametric: bool = False
    rivals: Numbers | None = None
    class_values: tuple[Numbers, ...] = ()

    def only(self, detectors: Sequence[str]) -> "MetricStudy":
        """The same study of some of its detectors, in this order."""
        if unknown := [name for name in detectors if name not in self.detectors]:
            raise UnknownNameError("detector", unknown[0], self.detectors)
        key = tuple(detectors)
        if key == self.detectors:
            return self
        if key not in self._selected:
            self._selected[key] = self._only(key)
        return self._selected[key]

    @cached_property
    def _selected(self) -> dict[tuple[str, ...], "MetricStudy"]:
        """Kept, because each computes its statistics once."""
        return {}

    def _only(self, detectors: tuple[str, ...]) -> "MetricStudy":
        rows = [self.detectors.index(name) for name in detectors]
        return replace(
            self,
            detectors=detectors,
            hold_outs=self.hold_outs[:, rows],
            folds=self.folds[:, :, rows],
            rivals=None if self.rivals is None else self.rivals[:, rows],
            class_values=tuple(values[:, rows] for values in self.class_values),
        )

    def within(self, cells: Sequence[bool]) -> "MetricStudy":
        """The same study of some of its cells."""
        chosen = np.flatnonzero(cells)
        return replace(
            self,
            cells=tuple(self.cells[number] for number in chosen),
            hold_outs=self.hold_outs[..., chosen],
            folds=self.folds[..., chosen],
            rivals=None if self.rivals is None else self.rivals[..., chosen],
            class_values=tuple(self.class_values[number] for number in chosen) if self.class_values else (),
        )

    @property
    def disjoint(self) -> bool:
        """Whether the truth is of other images than the cross-validations."""
        return self.rivals is not None

    @property
    def has_truth(self) -> bool:
        """Whether hold-outs were made."""
        return len(self.hold_outs) > 0

    @property
    def has_folds(self) -> bool:
        """Whether cross-validations were made."""
        return len(self.folds) > 0

    @property
    def testable(self) -> bool:
        """Whether there are cells and detectors enough for tests over cells."""
        return len(self.cells) >= FEWEST_SETS and len(self.detectors) >= 2

    @cached_property
    def convergence(self) -> RunningMean:
        """The truth while repetitions are added to it."""
        return running_mean(self.hold_outs)

    @cached_property
    def truth(self) -> Numbers:
        """``[detector, cell]``: the mean over the hold-outs."""
        return np.asarray(self.hold_outs.mean(axis=0))

    @property
    def truth_error(self) -> Numbers:
        """Standard error of the truth: what more hold-outs of the same images would change. NaN for a single one."""
        return np.asarray(self.convergence.error[-1])

    @cached_property
    def repetitions(self) -> Numbers:
        """``[repetition, detector, cell]``: the mean over the folds of each cross-validation."""
        return np.asarray(self.folds.mean(axis=1))

    @property
    def estimate(self) -> Numbers:
        """``[detector, cell]``: the truth, or the mean of the cross-validations where no hold-outs were made."""
        return self.truth if self.has_truth else self.cross_validated

    @cached_property
    def truth_tests(self) -> PairTests:
        """All pairs of detectors over the cells, by the truth."""
        return self._pairs(self.truth)

    @cached_property
    def repetition_tests(self) -> list[PairTests]:
        """The same by each cross-validation alone."""
        return [self._pairs(values) for values in self.repetitions]

    @cached_property
    def against_truth(self) -> Numbers:
        """``[repetition, detector]``: p of the test of each cross-validation against the truth, over the cells."""
        return np.array([self._tests(values, self.truth).p for values in self.repetitions])

    def counts(self, alpha: float) -> NDArray[np.int64]:
        """In how many cross-validations each pair differs significantly."""
        return significance_counts(self.repetition_tests, alpha)

    def rates(self, alpha: float) -> HitsAndErrors:
        """Hit and error rate of the cross-validations."""
        return hits_and_errors(self.truth_tests.p, self.counts(alpha), alpha)

    def directions(self, alpha: float) -> Directions:
        """Whether they also find the right winner."""
        return directions(self.truth_tests, self.repetition_tests, alpha)

    def ranks(self, alpha: float = 0.05) -> CriticalDifference:
        """Average ranks over the cells, and what separates them; at least 3 detectors and 8 cells."""
        return critical_difference(self.estimate, alpha=alpha)

    def friedman(self) -> float:
        """p of Friedman's test over the cells."""
        return friedman(self.estimate)

    @property
    def has_error_ratio(self) -> bool:
        """Whether there are hold-outs enough to set as many as there are folds against a truth of others."""
        plain, truth = self._plain_and_truth()
        return self.has_folds and len(plain) >= self.folds.shape[1] and len(truth) >= 2

    def error_ratio(self) -> ErrorRatio:
        """The error of a cross-validation over that of as many plain hold-outs; see :func:`error_ratio`."""
        return error_ratio(*self._plain_and_truth(), self.repetitions, self.folds.shape[1])

    def _plain_and_truth(self) -> tuple[Numbers, Numbers]:
        """Hold-outs that compete with the folds, and others that make the truth."""
        if self.rivals is not None:
            return self.rivals, self.hold_outs
        half = len(self.hold_outs) // 2
        return self.hold_outs[:half], self.hold_outs[half:]

    @cached_property
    def cross_validated(self) -> Numbers:
        """``[detector, cell]``: the mean over OOD classes, each counting alike, where classes are known by themselves;
        else over the folds."""
        if self.class_values:
            return np.stack([values.mean(axis=0) for values in self.class_values], axis=1)
        return np.asarray(self.repetitions.mean(axis=0))

    @cached_property
    def class_intervals(self) -> Numbers:
        """``[end, detector, cell]``: 95 % interval of ``cross_validated`` for other OOD classes.

        By OOD class where classes are known by themselves, NaN for a cell with too few of them; else by resampling the
        groups of classes that folds test, which covers less than it promises where folds are few.
        """
        if not self.class_values:
            flat = self.folds.reshape(*self.folds.shape[:2], -1)
            return class_group_intervals(flat).reshape(2, len(self.detectors), len(self.cells))
        ends = np.full((2, len(self.detectors), len(self.cells)), np.nan)
        for number, values in enumerate(self.class_values):
            if len(values) >= FEWEST_CLASSES:
                ends[:, :, number] = class_interval(values)
        return ends

    @property
    def mean_intervals(self) -> Numbers:
        """``[end, detector]``: the same of the mean over all cells; NaN where classes are too few."""
        if not self.class_values:
            return class_group_intervals(self.folds.mean(axis=3))
        if min(map(len, self.class_values)) < FEWEST_CLASSES:
            return np.full((2, len(self.detectors)), np.nan)
        groups: dict[str, list[Numbers]] = {}
        for cell, values in zip(self.cells, self.class_values):
            # a set that lost classes to one ID set has other classes there
            groups.setdefault(f"{cell.pair.partition('/')[2]} {len(values)}", []).append(values)
        return np.stack(mean_class_interval(groups))

    @property
    def class_counts(self) -> tuple[int, ...]:
        """How many OOD classes each cell has, where they are known by themselves."""
        return tuple(len(values) for values in self.class_values)

    def separated_by_classes(self, cell: int, alpha: float = 0.05) -> int | None:
        """How many pairs of detectors differ in a cell over its OOD classes, after Holm; None where they are few."""
        values = self.class_values[cell] if self.class_values else np.empty((0, 0))
        if len(values) < FEWEST_CLASSES or len(self.detectors) < 2:
            return None
        first, second = np.triu_indices(len(self.detectors), 1)
        return int((holm(class_tests(values[:, first] - values[:, second])) <= alpha).sum())

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each detector and cell, with everything that is known of it as fractions."""
        columns: dict[str, Numbers] = {}
        if self.has_truth:
            columns |= {"truth": self.truth, "truth_error": self.truth_error}
        if self.has_folds:
            low, high = self.class_intervals
            columns |= {
                "mean_over_folds": np.asarray(self.repetitions.mean(axis=0)),
                "cross_validated": self.cross_validated,
                "class_low": low,
                "class_high": high,
            }
        rows = [
            {"training": cell.training, "pair": cell.pair, "detector": detector}
            | {name: float(values[d, c]) for name, values in columns.items()}
            for c, cell in enumerate(self.cells)
            for d, detector in enumerate(self.detectors)
        ]
        return pd.DataFrame(rows)

    def fold_test(self, first: str, second: str, cell: int, repetition: int | None = None) -> PairedTest:
        """Nadeau & Bengio's test of two detectors in one cell, over the folds of one repetition or of all.

        Training and validation images both shape the network, so K folds test 1 image for K - 1 that it was made from.
        """
        rows = []
        for name in (first, second):
            if name not in self.detectors:
                raise UnknownNameError("detector", name, self.detectors)
            values = self.folds[:, :, self.detectors.index(name), cell]
            rows.append((values if repetition is None else values[repetition]).ravel())
        return corrected_t(*rows, test_to_train=1.0 / (self.folds.shape[1] - 1))

    @cached_property
    def fold_tests(self) -> pd.DataFrame:
        """Nadeau & Bengio's test of every pair in every cell, over all folds of all repetitions.

        ``p_holm`` is corrected over the pairs of a cell.
        """
        pairs = list(combinations(self.detectors, 2))
        rows = []
        for number, cell in enumerate(self.cells):
            tests = [self.fold_test(*pair, number) for pair in pairs]
            corrected = holm([test.p for test in tests])
            for (first, second), test, p in zip(pairs, tests, corrected):
                place: dict[str, str | float] = {"training": cell.training, "pair": cell.pair}
                place |= {"first": first, "second": second}
                numbers = {"difference": test.difference, "low": test.low, "high": test.high, "t": test.statistic}
                rows.append(place | numbers | {"p": test.p, "p_holm": float(p)})
        return pd.DataFrame(rows)

    def wins(self, alpha: float = 0.05) -> NDArray[np.int64]:
        """In how many cells the detector of the row is better than that of the column by ``fold_tests``, after Holm."""
        place = {name: index for index, name in enumerate(self.detectors)}
        found = np.zeros((len(place), len(place)), dtype=np.int64)
        for row in self.fold_tests[self.fold_tests["p_holm"] <= alpha].itertuples():
            first, second = place[str(row.first)], place[str(row.second)]
            winner, loser = (first, second) if float(str(row.difference)) > 0.0 else (second, first)
            found[winner, loser] += 1
        return found

    def _tests(self, first: Numbers, second: Numbers) -> CellTests:
        return cell_tests(first, second, test=self.test, auto_parametric=self.auto_parametric)

    def _pairs(self, values: Numbers) -> PairTests:
        return pair_tests(values, test=self.test, auto_parametric=self.auto_parametric)


def study_metric(
    table: CrossValidationTable, metric: str, *, test: str | None = None, auto_parametric: bool | None = None
) -> MetricStudy:
    """The study of one metric, from the complete repetitions of a table.

    Parameters
    ----------
    test : ``"wilcoxon"`` (paired), or ``"mannwhitney"`` as the text of the paper prints it; what the plan of the table
        says unless given.
    auto_parametric : Student's paired t where the differences pass for normal; as the plan says unless given.
    """
    plan = table.metadata.get("plan", {})
    test = test or plan.get("test", "wilcoxon")
    auto_parametric = bool(plan.get("auto_parametric")) if auto_parametric is None else auto_parametric
    cells = tuple(table.cells)
    nothing = {"fold": (0, 1, len(table.detectors), len(cells)), "hold_out": (0, len(table.detectors), len(cells))}
    hold_outs = table.hold_outs(metric) if table.complete("hold_out") else np.empty(nothing["hold_out"])
    folds = table.folds(metric) if table.complete("fold") else np.empty(nothing["fold"])
    if folds.shape[1] < 2:  # a study that was stopped after its first fold has not yet crossed anything
        folds = np.empty(nothing["fold"])
    if not len(hold_outs) and not len(folds):
        raise DataError(
            "the table holds no complete repetition, neither of folds nor of hold-outs: every detector is needed in "
            "every cell; let the study go on until one is finished"
        )
    numbers = tuple(table.complete("fold")) if len(folds) else ()
    rivals = None
    if plan.get("disjoint_truth"):
        of_truth = np.array(table.complete("hold_out"), dtype=np.int64) % 2 == 1
        hold_outs, rivals = hold_outs[of_truth], hold_outs[~of_truth]
    names = tuple(table.detectors)
    classes = _class_values(table, metric, numbers)
    return MetricStudy(metric, names, cells, hold_outs, folds, numbers, test, auto_parametric, rivals, classes)


def _class_values(table: CrossValidationTable, metric: str, numbers: Sequence[int]) -> tuple[Numbers, ...]:
    """Of each cell the values of its OOD classes over the complete cross-validations; empty where there are none."""
    if metric != CLASS_METRIC or table.details is None or not numbers:
        return ()
    own = table.details
    return tuple(own.class_values("fold", numbers, *cell, table.detectors) for cell in table.cells)


def variance_shares(frame: pd.DataFrame) -> VarianceShares:
    """Where the spread comes from, for the runs of one detector, cell and metric.

    Parameters
    ----------
    frame : one row per run of a crossed design; columns ``id_draw, ood_draw, training_seed, value``.
    """
    return variance_components(frame["value"], frame["id_draw"], frame["ood_draw"], frame["training_seed"])


def variance_table(table: CrossValidationTable, metric: str) -> pd.DataFrame:
    """The variance components of every cell and detector with a crossed design that is large enough to estimate them.

    A design of a single seed, split or draw of classes, or one that was interrupted early, gives no row.
    """
    rows = []
    runs = table.crossed(metric)
    for (training, pair, detector), part in runs.groupby(["training", "pair", "detector"], sort=False, observed=True):
        try:
            found = variance_shares(part)
        except DataError:
            continue
        place = {"training": training, "pair": pair, "detector": detector, "runs": found.runs}
        components = {
            "id_sample": found.id_sample,
            "ood_classes": found.ood_classes,
            "interaction": found.interaction,
            "training_seed": found.training_seed,
        }
        shares = {f"{name}_share": share for name, share in found.shares().items()}
        rows.append({**place, **components, **shares})
    return pd.DataFrame(rows)
