"""The tables of a study by dual cross-validation: tables 4 to 9 of DCV-ROOD, those of its appendix, and what they lack.

Each function makes one sheet. The stars are those that the legend of the paper promises (its tables misplace some).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.document.sheet import Entry, Sheet
from oodscope.document.wording import span
from oodscope.metrics.catalog import METRICS
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


def truth(study: MetricStudy) -> Sheet:
    """Table 4: the benchmark truth, a row per cell and a column per detector."""
    runs, notes = len(study.hold_outs), ["Bold: best of its row."]
    if runs > 1:
        middle, most = np.median(study.truth_error), study.truth_error.max()
        notes.append(f"Standard errors of the means: median {middle:.4f}, largest {most:.4f}.")
    title = f"Benchmark truth: {label(study.metric)}, mean of {runs} hold-outs"
    return _by_cell(study, "truth", title, study.truth, tuple(notes))


def truth_errors(study: MetricStudy) -> Sheet:
    """Standard errors of the truth."""
    title = f"Standard error of the benchmark truth: {label(study.metric)}"
    note = "What more hold-outs of the same images and classes would change; not what other classes would."
    return _by_cell(study, "truth-standard-errors", title, study.truth_error, (note,), bold=False)


def cross_validated(study: MetricStudy) -> Sheet:
    """What dual cross-validation says, with the interval over OOD classes."""
    mean = study.repetitions.mean(axis=0)
    title = f"Dual cross-validation: {label(study.metric)}, mean of {len(study.folds)} × {study.folds.shape[1]} folds"
    note = (
        "In brackets: 95 % interval in percent for other OOD classes, by resampling the groups of classes "
        "that folds test."
    )
    texts = np.array(
        [
            [f"{mean[d, c]:.4f} [{span(*study.class_intervals[:, d, c])}]" for c in range(len(study.cells))]
            for d in range(len(study.detectors))
        ]
    )
    return _by_cell(study, "cross-validated", title, mean, ("Bold: best of its row.", note), texts=texts)


def p_values(study: MetricStudy) -> Sheet:
    """Table 5: the p-values of all pairs by the truth."""
    tests = study.truth_tests
    held = tests.holm() <= 0.05
    notes = (_STARS, f"Test: {study.test}. Bold: p ≤ 0.05 also after Holm's correction over the pairs.", _DEPENDENT)
    title = f"Differences in the benchmark truth: {label(study.metric)}, p-values"
    return _matrix(study, "p-values", title, _p_entries(tests.p, held), notes)


def corrected_p_values(study: MetricStudy) -> Iterator[Sheet]:
    """Table 5 after Holm, and after Benjamini and Hochberg."""
    tests = study.truth_tests
    corrections = (("holm", "Holm", tests.holm()), ("bh", "Benjamini-Hochberg", tests.benjamini_hochberg()))
    for short, words, p in corrections:
        title = f"Differences in the benchmark truth: {label(study.metric)}, p-values after {words}"
        yield _matrix(study, f"p-values-{short}", title, _p_entries(p, p <= 0.05), (_STARS, _DEPENDENT))


def counts(study: MetricStudy, alpha: float) -> Sheet:
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


def rates(studies: Sequence[MetricStudy], alpha: float) -> Sheet:
    """Tables 7 and 8: hit and error rates by metric, with whole numbers and directions."""
    rows = []
    for study in studies:
        both, way = study.rates(alpha), study.directions(alpha)
        fractions = [
            entry
            for rate in (both.hits, both.errors)
            for entry in (
                Entry(f"{rate.value:.4f}" if rate.pairs else "–", rate.value if rate.pairs else ""),
                Entry(f"{rate.total}/{rate.pairs}"),
            )
        ]
        agreed = Entry(f"{100 * way.share:.1f} %" if both.hits.pairs else "–", way.share if both.hits.pairs else "")
        rows.append((Entry(label(study.metric)), *fractions, agreed, Entry(str(way.opposite), way.opposite)))
    columns = ("metric", "hit rate", "hits/pairs", "error rate", "errors/pairs", "same winner", "wrong winner")
    most = len(studies[0].folds)
    notes = (
        f"Hit rate: cross-validations (of {most}) that find a pair significant, mean over the pairs that differ in "
        "truth. Error rate: the same over the pairs that do not.",
        "Same winner: of all verdicts on pairs that differ in truth, the share that is significant in the same "
        "direction; wrong winner: how many are significant in the other.",
    )
    return Sheet(f"rates-{alpha:g}", f"Hit and error rate by metric, p ≤ {alpha:g}", columns, tuple(rows), 1, notes)


def against_truth(studies: Sequence[MetricStudy]) -> Sheet:
    """Table 9: which cross-validations differ from the truth, and for which detectors."""
    rows = []
    for study in studies:
        told = []
        for alpha in ALPHAS:
            found = study.against_truth <= alpha
            named = [
                f"{number} ({', '.join(np.array(study.detectors)[flags])})"
                for number, flags in zip(study.numbers, found)
                if flags.any()
            ]
            told.append(Entry(", ".join(named) or "–"))
        rows.append((Entry(label(study.metric)), *told))
    columns = ("metric", *(f"p ≤ {alpha:g}" for alpha in ALPHAS))
    tests = studies[0].against_truth.size
    notes = (
        "The numbers of the repetitions that differ and, in brackets, for which detectors.",
        f"Each detector's cross-validation against its benchmark truth over the cells, {studies[0].test}: {tests} "
        "tests for a metric, uncorrected. Failing to differ is no proof of being equal.",
    )
    title = "Significant differences between benchmark truth and dual cross-validation"
    return Sheet("against-truth", title, columns, tuple(rows), len(columns), notes)


def against_truth_p(study: MetricStudy) -> Sheet:
    """The p-values behind table 9."""
    columns = ("detector", *(f"repetition {number}" for number in study.numbers))
    rows = [
        (Entry(name), *(Entry(starred(p), float(p)) for p in study.against_truth[:, index]))
        for index, name in enumerate(study.detectors)
    ]
    title = f"Dual cross-validation against the benchmark truth: {label(study.metric)}, p-values"
    return Sheet("against-truth-p", title, columns, tuple(rows), 1, (_STARS, _DEPENDENT))


def wins(study: MetricStudy) -> Sheet:
    """In how many cells one detector beats another by the test that allows for overlapping training sets."""
    found = study.wins()
    entries = [[Entry(str(value), int(value)) for value in values] for values in found]
    title = f"Cells (of {len(study.cells)}) in which the row beats the column: {label(study.metric)}"
    notes = (
        "Corrected resampled t-test over all folds (Nadeau and Bengio 2003), p ≤ 0.05 after Holm over the pairs of a "
        "cell.",
    )
    return _matrix(study, "wins", title, entries, notes)


def _by_cell(
    study: MetricStudy,
    name: str,
    title: str,
    values: NDArray[np.float64],
    notes: tuple[str, ...],
    *,
    bold: bool = True,
    texts: NDArray[np.str_] | None = None,
) -> Sheet:
    rows = []
    for number, cell in enumerate(study.cells):
        column = values[:, number]
        id_set, _, ood_set = cell.pair.partition("/")
        labels = (Entry(cell.training.replace("_", " "), cell.training), Entry(id_set), Entry(ood_set))
        entries = [
            Entry(
                f"{value:.4f}" if texts is None else str(texts[index, number]),
                float(value),
                bold and bool(value == column.max()),
            )
            for index, value in enumerate(column)
        ]
        rows.append((*labels, *entries))
    return Sheet(name, title, ("training", "ID", "OOD", *study.detectors), tuple(rows), 3, notes)


def _p_entries(p: NDArray[np.float64], strong: NDArray[np.bool_]) -> list[list[Entry]]:
    return [
        [Entry(starred(value), float(value), bool(strong[row, column])) for column, value in enumerate(values)]
        for row, values in enumerate(p)
    ]


def _matrix(
    study: MetricStudy, name: str, title: str, entries: Sequence[Sequence[Entry]], notes: tuple[str, ...]
) -> Sheet:
    rows = [
        (Entry(detector), *(Entry("–", "") if row == column else entry for column, entry in enumerate(line)))
        for row, (detector, line) in enumerate(zip(study.detectors, entries))
    ]
    return Sheet(name, title, ("", *study.detectors), tuple(rows), 1, notes)
