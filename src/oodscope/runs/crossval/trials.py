"""What a cross-validation says for and against detectors: its trial, and how far folds spread."""

from collections.abc import Iterator

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.chapter import anchor_of
from oodscope.document.number import Number
from oodscope.document.trial import NEMENYI, Entry, Trial, make_trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.metrics.comparison.many_sets import critical_difference
from oodscope.runs.crossval.run import HEADLINE, PROTOCOL, CrossValidationTable
from oodscope.runs.crossval.study import MetricStudy, study_metric


def finished_study(table: CrossValidationTable) -> MetricStudy | None:
    """The study of the metric that ranks; None where it was not measured or no repetition is complete yet."""
    return next((study for study in finished_studies(table) if study.metric == HEADLINE), None)


def finished_studies(table: CrossValidationTable) -> Iterator[MetricStudy]:
    """The study of every metric; none where no repetition is complete yet."""
    for metric in table.metrics:
        try:
            yield study_metric(table, metric)
        except DataError:
            return


def trials_of(table: CrossValidationTable) -> Iterator[Trial]:
    """The mean over all cells, with the interval for other OOD classes where folds were made."""
    study = finished_study(table)
    if study is None:
        return
    values = study.cross_validated if study.has_folds else study.truth
    ends = _ends(study)
    ranks = _nemenyi(values) if study.testable and len(study.detectors) > 2 else [None] * len(values)
    entries = [
        Entry(name, "default", Number(float(values[row].mean()), *ends[row], rank=ranks[row]))
        for row, name in enumerate(study.detectors)
    ]
    where = f"{len(study.cells)} cells, {'folds' if study.has_folds else 'hold-outs'}"
    yield make_trial(PROTOCOL, where, "mean AUROC", entries, higher=True, measured=NEMENYI)


def _ends(study: MetricStudy) -> list[tuple[float | None, float | None]]:
    if not study.has_folds:
        return [(None, None)] * len(study.detectors)
    low, high = study.mean_intervals
    return [(None, None) if np.isnan(a) else (float(a), float(b)) for a, b in zip(low, high)]


def _nemenyi(values: np.ndarray) -> list[tuple[int, int] | None]:
    """Best and worst place that average ranks, a critical difference apart or not, allow."""
    tested = critical_difference(values)
    ranks = np.array(tested.average_ranks)
    better = (ranks[None, :] <= ranks[:, None] - tested.difference).sum(axis=1)
    worse = (ranks[None, :] >= ranks[:, None] + tested.difference).sum(axis=1)
    return [(1 + int(above), len(ranks) - int(below)) for above, below in zip(better, worse)]


def weaknesses_of(table: CrossValidationTable, subject: Subject) -> Iterator[Weakness]:
    """The cell in which the folds of a detector spread most."""
    study = finished_study(table)
    if study is None or not study.has_folds or subject.detector not in study.detectors:
        return
    spread = study.folds[:, :, study.detectors.index(subject.detector)].std(axis=1, ddof=1).mean(axis=0)
    deviation, cell = max(zip(map(float, spread), study.cells), key=lambda each: each[0])
    words = f"{cell}: standard deviation"
    after, anchor = "points of AUROC between folds", anchor_of(PROTOCOL)
    yield Weakness("unstable folds", words, deviation, after, anchor, deviation)
