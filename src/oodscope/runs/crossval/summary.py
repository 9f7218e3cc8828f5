"""A study by cross-validation in one small table: each detector, averaged over the pairs of sets."""

from collections.abc import Sequence

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.number import Number
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.metrics.catalog import METRICS
from oodscope.runs.crossval.run import HEADLINE, CrossValidationTable
from oodscope.runs.crossval.study import MetricStudy, study_metric


def summary(table: CrossValidationTable) -> Table:
    """A row per detector, best first, and a column per way of training; the truth where hold-outs were made."""
    metric = HEADLINE if HEADLINE in table.metrics else table.metrics[0]
    title = f"{METRICS[metric].heading}, mean over {len({cell.pair for cell in table.cells})} pairs of sets"
    try:
        study = study_metric(table, metric)
    except DataError as error:
        rows = tuple(Row((Entry(name),), ()) for name in table.detectors)
        return Table("summary", f"{title}: {error}", columns("detector"), (), rows)
    trainings = list(dict.fromkeys(cell.training for cell in study.cells))
    of = {name: [cell.training == name for cell in study.cells] for name in trainings}
    means = np.stack([study.estimate[:, of[name]].mean(axis=1) for name in trainings], axis=1)
    ends = [_ends(study, of[name]) for name in trainings]
    order = np.lexsort((np.arange(len(means)), -means[:, 0]))
    best = means.max(axis=0)
    rows = tuple(
        Row(
            (Entry(study.detectors[row]),),
            tuple(
                Number(float(value), each[row][0], each[row][1], bool(value == top))
                for value, top, each in zip(means[row], best, ends)
            ),
        )
        for row in order
    )
    source = f"{len(study.hold_outs)} hold-outs" if study.has_truth else f"{len(study.folds)} cross-validations"
    note = f"In percent, mean of {source}. Bold: best of its column."
    if any(low is not None for each in ends for low, _ in each):
        note += " 95 % interval of the cross-validations for other OOD classes."
    heads = tuple(Column("", name.replace("_", " "), key=name) for name in trainings)
    return Table("summary", title, columns("detector"), heads, rows, (note,))


def _ends(study: MetricStudy, cells: Sequence[bool]) -> list[tuple[float | None, float | None]]:
    """Of each detector the interval of the mean over some cells, for other OOD classes."""
    if not study.has_folds:
        return [(None, None)] * len(study.detectors)
    low, high = study.within(cells).mean_intervals
    return [(None, None) if np.isnan(a) else (float(a), float(b)) for a, b in zip(low, high)]
