"""A study by dual cross-validation on one small sheet: each detector, averaged over the pairs of sets."""

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.sheet import Entry, Sheet
from oodscope.document.wording import percent
from oodscope.metrics.catalog import METRICS
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric

HEADLINE = "auroc"


def summary(table: CrossValidationTable) -> Sheet:
    """A row per detector, best first, and a column per way of training; the truth where hold-outs were made."""
    metric = HEADLINE if HEADLINE in table.metrics else table.metrics[0]
    title = f"{METRICS[metric].heading}, mean over {len({cell.pair for cell in table.cells})} pairs of sets"
    try:
        study = study_metric(table, metric)
    except DataError as error:
        return Sheet("summary", f"{title}: {error}", ("detector",), tuple((Entry(name),) for name in table.detectors))
    trainings = list(dict.fromkeys(cell.training for cell in study.cells))
    of = {name: [cell.training == name for cell in study.cells] for name in trainings}
    means = np.stack([study.estimate[:, of[name]].mean(axis=1) for name in trainings], axis=1)
    order = np.lexsort((np.arange(len(means)), -means[:, 0]))
    best = means.max(axis=0)
    rows = tuple(
        (
            Entry(study.detectors[row]),
            *(Entry(percent(value), float(value), bool(value == top)) for value, top in zip(means[row], best)),
        )
        for row in order
    )
    source = f"{len(study.hold_outs)} hold-outs" if study.has_truth else f"{len(study.folds)} cross-validations"
    note = f"In percent, mean of {source}. Bold: best of its column."
    heads = (name.replace("_", " ") for name in trainings)
    return Sheet("summary", title, ("detector", *heads), rows, 1, (note,))
