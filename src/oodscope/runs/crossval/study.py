"""One metric of a study by cross-validation: the truth, the repetitions, and how well these find it."""

from dataclasses import dataclass
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
from oodscope.metrics.crossval.convergence import RunningMean, running_mean
from oodscope.metrics.crossval.hold_outs import ErrorRatio, error_ratio
from oodscope.metrics.crossval.variance import VarianceShares, variance_components
from oodscope.runs.crossval.run import CrossCell, CrossValidationTable

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class MetricStudy:
    """Every statistic of one metric, computed when it is asked for.

    Parameters
    ----------
    hold_outs : ``[repetition, detector, cell]``: the repeated hold-out; empty where none was made.
    folds : ``[repetition, fold, detector, cell]``: the cross-validations; empty where none was made.
    numbers : which repetitions of the table the cross-validations are.
    test, auto_parametric : how detectors are compared over cells; see :func:`cell_tests`.
    """

    metric: str
    detectors: tuple[str, ...]
    cells: tuple[CrossCell, ...]
    hold_outs: Numbers
    folds: Numbers
    numbers: tuple[int, ...]
    test: str = "wilcoxon"
    auto_parametric: bool = False

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
        return self.truth if self.has_truth else np.asarray(self.repetitions.mean(axis=0))

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
        return self.has_folds and len(self.hold_outs) >= 2 * self.folds.shape[1]

    def error_ratio(self) -> ErrorRatio:
        """The error of a cross-validation over that of as many plain hold-outs; see :func:`error_ratio`."""
        return error_ratio(self.hold_outs, self.repetitions, self.folds.shape[1])

    @cached_property
    def class_intervals(self) -> Numbers:
        """``[end, detector, cell]``: 95 % interval of the cross-validated mean for other OOD classes."""
        flat = self.folds.reshape(*self.folds.shape[:2], -1)
        return class_group_intervals(flat).reshape(2, len(self.detectors), len(self.cells))

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each detector and cell, with everything that is known of it as fractions."""
        columns: dict[str, Numbers] = {}
        if self.has_truth:
            columns |= {"truth": self.truth, "truth_error": self.truth_error}
        if self.has_folds:
            low, high = self.class_intervals
            columns |= {
                "cross_validated": np.asarray(self.repetitions.mean(axis=0)),
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
    table: CrossValidationTable, metric: str, *, test: str = "wilcoxon", auto_parametric: bool = False
) -> MetricStudy:
    """The study of one metric, from the complete repetitions of a table.

    Parameters
    ----------
    test : ``"wilcoxon"`` (paired), or ``"mannwhitney"`` as the text of the paper prints it.
    auto_parametric : Student's paired t where the differences pass for normal.
    """
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
    return MetricStudy(metric, tuple(table.detectors), cells, hold_outs, folds, numbers, test, auto_parametric)


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
