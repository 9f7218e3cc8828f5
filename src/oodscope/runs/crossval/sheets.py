"""The tables of a study by cross-validation: tables 4 to 9 of DCV-ROOD, those of its appendix, and what they lack.

Each function makes one table. The stars are those that the legend of the paper promises (its tables misplace some).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.document.number import Number
from oodscope.document.table import Cell, Column, Entry, Row, Table, columns
from oodscope.document.wording import percent
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.crossval.class_units import FEWEST_CLASSES
from oodscope.runs.crossval.fidelity import error_ratios, lead, rates, separations
from oodscope.runs.crossval.study import MetricStudy

ALPHAS = (0.1, 0.05, 0.01)

_STARS = "*** p ≤ 0.01, ** p ≤ 0.05, * p ≤ 0.1."
_DEPENDENT = "The cells share networks and images, so these p-values come out too small."


def label(metric: str) -> str:
    """How tables call a metric."""
    return METRICS[metric].label


def starred(p: float) -> str:
    """``0.0301**``."""
    stars = "*" * sum(p <= alpha for alpha in ALPHAS)
    return ("<0.0001" if p < 0.00005 else f"{p:.4f}") + stars


def truth(study: MetricStudy) -> Table:
    """Table 4: the benchmark truth, a row per cell and a column per detector."""
    runs, notes = len(study.hold_outs), ["In percent. Bold: best of its row."]
    if runs > 1:
        middle, most = np.median(study.truth_error), study.truth_error.max()
        notes.append(f"Standard errors of the means: median {percent(middle)}, largest {percent(most)} points.")
    title = f"Benchmark truth: {label(study.metric)}, mean of {runs} hold-outs"
    return _by_cell(study, "truth", title, study.truth, tuple(notes))


def truth_errors(study: MetricStudy) -> Table:
    """Standard errors of the truth."""
    title = f"Standard error of the benchmark truth: {label(study.metric)}"
    note = "In points. What more hold-outs of the same images and classes would change; not what other classes would."
    return _by_cell(study, "truth-standard-errors", title, study.truth_error, (note,), bold=False)


def cross_validated(study: MetricStudy) -> Table:
    """What cross-validation says, with the interval over OOD classes."""
    title = f"Cross-validation: {label(study.metric)}, mean of {len(study.folds)} × {study.folds.shape[1]} folds"
    if study.class_values:
        note = (
            "In percent, OOD classes counting alike, with the 95 % interval for other OOD classes: Student's t over "
            f"the OOD classes of a cell, each averaged over repetitions ({min(study.class_counts)} to "
            f"{max(study.class_counts)} classes; none below {FEWEST_CLASSES})."
        )
    else:
        note = (
            "In percent, with the 95 % interval for other OOD classes, by resampling the groups of classes that folds "
            "test; with few folds it covers less."
        )
    low, high = study.class_intervals
    notes = ("Bold: best of its row.", note)
    return _by_cell(study, "cross-validated", title, study.cross_validated, notes, ends=(low, high))


def p_values(study: MetricStudy) -> Table:
    """Table 5: the p-values of all pairs by the truth."""
    tests = study.truth_tests
    held = tests.holm() <= 0.05
    notes = (_STARS, f"Test: {study.test}. Bold: p ≤ 0.05 also after Holm's correction over the pairs.", _DEPENDENT)
    title = f"Differences in the benchmark truth: {label(study.metric)}, p-values"
    return _matrix(study, "p-values", title, _p_entries(tests.p, held), notes)


def corrected_p_values(study: MetricStudy) -> Iterator[Table]:
    """Table 5 after Holm, and after Benjamini and Hochberg."""
    tests = study.truth_tests
    corrections = (("holm", "Holm", tests.holm()), ("bh", "Benjamini-Hochberg", tests.benjamini_hochberg()))
    for short, words, p in corrections:
        title = f"Differences in the benchmark truth: {label(study.metric)}, p-values after {words}"
        yield _matrix(study, f"p-values-{short}", title, _p_entries(p, p <= 0.05), (_STARS, _DEPENDENT))


def counts(study: MetricStudy, alpha: float) -> Table:
    """Table 6: in how many cross-validations a pair differs; negative where it does not differ in truth."""
    found, differ = study.counts(alpha), study.truth_tests.p <= alpha
    signed = np.where(differ, found, -found)
    entries = [
        [Entry(str(value), int(value), bool(differ[row, column])) for column, value in enumerate(values)]
        for row, values in enumerate(signed)
    ]
    title = f"Cross-validations (of {len(study.folds)}) in which a pair differs: {label(study.metric)}, p ≤ {alpha:g}"
    notes = ("Bold: the pair also differs in the benchmark truth. Negative: it does not.",)
    return _matrix(study, f"counts-{alpha:g}", title, entries, notes)


def against_truth(studies: Sequence[MetricStudy]) -> Table:
    """Table 9: which cross-validations differ from the truth, and for which detectors."""
    rows = []
    for study in studies:
        entries = []
        for alpha in ALPHAS:
            found = study.against_truth <= alpha
            named = [
                f"{number} ({', '.join(np.array(study.detectors)[flags])})"
                for number, flags in zip(study.numbers, found)
                if flags.any()
            ]
            entries.append(Entry(", ".join(named) or "–"))
        rows.append(Row((Entry(label(study.metric)), *entries), ()))
    # sentences, which may be broken over lines: labels, not numbers
    labels = columns("metric", *(f"p ≤ {alpha:g}" for alpha in ALPHAS))
    tests = studies[0].against_truth.size
    notes = (
        "The numbers of the repetitions that differ and, in brackets, for which detectors.",
        f"Each detector's cross-validation against its benchmark truth over the cells, {studies[0].test}: {tests} "
        "tests for a metric, uncorrected. Failing to differ does not prove equality.",
    )
    title = "Significant differences between benchmark truth and cross-validation"
    return Table("against-truth", title, labels, (), tuple(rows), notes)


def against_truth_p(study: MetricStudy) -> Table:
    """The p-values behind table 9."""
    heads = columns(*(f"repetition {number}" for number in study.numbers))
    rows = tuple(
        Row((Entry(name),), tuple(Entry(starred(p), float(p)) for p in study.against_truth[:, index]))
        for index, name in enumerate(study.detectors)
    )
    title = f"Cross-validation against the benchmark truth: {label(study.metric)}, p-values"
    return Table("against-truth-p", title, columns("detector"), heads, rows, (_STARS, _DEPENDENT))


def wins(study: MetricStudy) -> Table:
    """In how many cells one detector beats another by the test that allows for overlapping training sets."""
    found = study.wins()
    entries = [[Entry(str(value), int(value)) for value in values] for values in found]
    title = f"Cells (of {len(study.cells)}) in which the row beats the column: {label(study.metric)}"
    notes = (
        "Corrected resampled t-test over all folds (Nadeau and Bengio 2003), p ≤ 0.05 after Holm over the pairs of a "
        "cell.",
    )
    return _matrix(study, "wins", title, entries, notes)


def overall_sheets(studies: Sequence[MetricStudy]) -> Iterator[Table]:
    """Whether cross-validation finds what the truth shows; none where either is missing or cells are few."""
    first = studies[0]
    if first.testable and first.has_truth and first.has_folds:
        yield from (rates(studies, alpha) for alpha in ALPHAS)
    if (ratios := error_ratios(studies)) is not None:
        yield ratios
    if first.testable and first.has_truth and first.has_folds:
        yield against_truth(studies)


def metric_sheets(study: MetricStudy) -> Iterator[Table]:
    """Every table of one metric that the study is large enough for: of cells first, then of pairs of detectors."""
    yield from cell_sheets(study)
    if (pairs := separations(study)) is not None:
        yield pairs
    yield from _by_pair(lead(study))


def cell_sheets(study: MetricStudy) -> Iterator[Table]:
    """The tables of one metric with a row per cell."""
    if study.has_truth:
        yield truth(study)
        if len(study.hold_outs) > 1:
            yield truth_errors(study)
    if study.has_folds:
        yield cross_validated(study)


def _by_pair(study: MetricStudy) -> Iterator[Table]:
    if study.has_truth and study.testable:
        yield p_values(study)
        yield from corrected_p_values(study)
    if study.has_truth and study.has_folds and study.testable:
        yield from (counts(study, alpha) for alpha in ALPHAS)
        yield against_truth_p(study)
    if study.has_folds and len(study.detectors) > 1:
        yield wins(study)


def _by_cell(
    study: MetricStudy,
    name: str,
    title: str,
    values: NDArray[np.float64],
    notes: tuple[str, ...],
    *,
    bold: bool = True,
    ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> Table:
    rows = []
    for number, cell in enumerate(study.cells):
        column = values[:, number]
        id_set, _, ood_set = cell.pair.partition("/")
        labels = (Entry(cell.training.replace("_", " "), cell.training), Entry(id_set), Entry(ood_set))
        cells: list[Cell] = []
        for detector, value in enumerate(column):
            best = bold and bool(value == column.max())
            if ends is None:
                cells.append(Entry(percent(float(value)), float(value), best))
            else:
                low, high = (None if np.isnan(end) else float(end) for end in (each[detector, number] for each in ends))
                cells.append(Number(float(value), low, high, best=best))
        rows.append(Row(labels, tuple(cells)))
    return Table(name, title, columns("training", "ID", "OOD"), columns(*study.detectors), tuple(rows), notes)


def _p_entries(p: NDArray[np.float64], strong: NDArray[np.bool_]) -> list[list[Entry]]:
    return [
        [Entry(starred(value), float(value), bool(strong[row, column])) for column, value in enumerate(values)]
        for row, values in enumerate(p)
    ]


def _matrix(
    study: MetricStudy, name: str, title: str, entries: Sequence[Sequence[Entry]], notes: tuple[str, ...]
) -> Table:
    rows = tuple(
        Row((Entry(detector),), tuple(None if row == column else entry for column, entry in enumerate(line)))
        for row, (detector, line) in enumerate(zip(study.detectors, entries))
    )
    return Table(name, title, (Column("", "", key="detector"),), columns(*study.detectors), rows, notes)
