"""What an operator would see of an evaluation: precision where outliers are rare."""

from collections.abc import Sequence

from oodscope.document.number import Number
from oodscope.document.table import Entry, Row, Table, columns
from oodscope.metrics.rejection.precision import measure_precision
from oodscope.runs.evaluation.run import Result


def precision_table(
    result: Result, prevalences: Sequence[float] = (0.5, 0.1, 0.01), fpr: float = 0.05, *, seed: int = 0
) -> Table:
    """For each detector and OOD set, of the images above a threshold the share that is OOD, by prevalence.

    Parameters
    ----------
    prevalences : shares of OOD images in operation; no test set knows them.
    fpr : share of the ID test images above the threshold.
    """
    scores, rows = result.scores, []
    for detector in scores.detectors:
        known = scores.scores(detector, role="id_test")
        for name in (*scores.sets("near"), *scores.sets("far")):
            foreign = scores.scores(detector, set=name)
            found = [measure_precision(known, foreign, share, fpr, seed=seed) for share in prevalences]
            cells = [Number(each.value, each.interval.low, each.interval.high) for each in found]
            rows.append(Row((Entry(detector), Entry(name)), (Number(found[0].tpr), *cells)))
    heads = columns("caught", *(f"{100 * share:g} % OOD" for share in prevalences))
    notes = (
        f"Threshold with {100 * fpr:g} % false alarms on the ID test images. Intervals: this threshold on other images "
        "like these; covariate-shifted images are not covered.",
    )
    title = f"Precision by prevalence, {result.record.model} on {result.record.benchmark}"
    return Table("precision", title, columns("detector", "set"), heads, tuple(rows), notes=notes)
