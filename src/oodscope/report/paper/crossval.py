"""The matrices of DCV-ROOD (Urrea-Castaño et al.) as figures, and the plots that its tables call for.

The paper prints tables; its own figures explain folds and show no numbers. The truth is its benchmark truth, the
mean of repeated hold-outs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Sheet

from oodscope.base.errors import DataError
from oodscope.document.figure import Figure, Mark, Text
from oodscope.document.wording import label
from oodscope.metrics.comparison.many_sets import FEWEST_SETS
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.look import named
from oodscope.report.paper.style import COLUMN, PAGE, legend_above
from oodscope.report.render.mpl import draw, draw_heatmap
from oodscope.results.opening import of_kind
from oodscope.results.run import Run
from oodscope.runs.crossval import figures
from oodscope.runs.crossval.run import HEADLINE, CrossValidation
from oodscope.runs.crossval.sheets import ALPHAS
from oodscope.runs.crossval.study import MetricStudy, study_metric

ALPHA = 0.05
_FLOOR = 1e-4
"""The smallest p that the colours separate from a smaller one."""


def pairs(runs: Sequence[Run]) -> Sheet:
    """Tables 5 and 6 side by side: p of every pair by the truth, and how many cross-validations find it different."""
    study = _study(runs, truth=True, folds=True, tests=True)
    sheet, (left, right) = _matrices(study, 2)
    size = _letters(study, 5, 2)
    p, counted = figures.pair_p_values(study, ALPHA), figures.pair_counts(study, ALPHA)
    draw_heatmap(left, p, colours="Blues_r", norm=LogNorm(_FLOOR, 1.0, clip=True), size=size)
    left.set_title(p.title)
    draw_heatmap(right, counted, size=size)
    right.set_title(counted.title)
    sheet.suptitle(_metric(study), fontsize=8)
    return sheet


def counts(runs: Sequence[Run]) -> Sheet:
    """Table 6 at each α: in how many cross-validations a pair differs; bold where it differs by the truth, too."""
    study = _study(runs, truth=True, folds=True, tests=True)
    sheet, panels = _matrices(study, len(ALPHAS))
    for alpha, panel in zip(ALPHAS, panels):
        draw_heatmap(panel, figures.pair_counts(study, alpha), size=_letters(study, 2, len(ALPHAS)))
        rates = study.rates(alpha)
        shown = [f"{rate.value:.1f}" if rate.pairs else "–" for rate in (rates.hits, rates.errors)]
        panel.set_title(f"p ≤ {alpha:g}\nhit rate {shown[0]}, error rate {shown[1]}")
    sheet.suptitle(f"{_metric(study)}: repetitions (of {len(study.folds)}) in which a pair differs", fontsize=8)
    return sheet


def agreement(runs: Sequence[Run]) -> Sheet:
    """How far the cross-validations lie from the truth, for each detector in each cell: mean and range, in points."""
    return _column(figures.agreement(_study(runs, truth=True, folds=True)), 2.9)


def ranks(runs: Sequence[Run]) -> Sheet:
    """Average ranks over the cells on a line, best to the left; a bar joins what Nemenyi's test cannot separate."""
    study = _study(runs, tests=True)
    if len(study.detectors) < 3:
        raise DataError(f"average ranks want at least 3 detectors; the study has {len(study.detectors)}")
    drawn = figures.average_ranks(study, ALPHA)
    drawn = replace(drawn, marks=tuple(_with_name(mark, study.detectors) for mark in drawn.marks))
    low, _ = drawn.y.range or (0.0, 0.0)
    sheet = Sheet(figsize=(COLUMN, 0.84 - 0.17 * low), layout="constrained")
    panel = sheet.add_subplot()
    draw(panel, drawn)
    panel.set_title(drawn.title, fontsize=8)
    return sheet


def _with_name(mark: Mark, detectors: Sequence[str]) -> Mark:
    """The words beside a detector's rank, with the name of its paper in place of its id."""
    if not isinstance(mark, Text):
        return mark
    first, _, rank_after = mark.text.strip().rpartition(" ")
    rank_before, _, last = mark.text.strip().partition(" ")
    if first in detectors:
        return replace(mark, text=f" {named(first)} {rank_after} ")
    return replace(mark, text=f" {rank_before} {named(last)} ") if last in detectors else mark


def convergence(runs: Sequence[Run]) -> Sheet:
    """How far the mean of the first n hold-outs lies from the last one, a line per detector, averaged over cells."""
    return _column(figures.convergence(_study(runs, truth=True)), 2.6)


def _column(figure: Figure, height: float) -> Sheet:
    """A figure as wide as a column, its legend above it."""
    sheet = Sheet(figsize=(COLUMN, height), layout="constrained")
    panel = sheet.add_subplot()
    draw(panel, figure)
    legend_above(sheet, panel, 4)
    return sheet


def _study(runs: Sequence[Run], *, truth: bool = False, folds: bool = False, tests: bool = False) -> MetricStudy:
    """The headline metric of the one study, with all that a figure wants of it."""
    given = of_kind(runs, CrossValidation)
    if len(given) != 1:
        raise DataError(f"{len(given)} cross-validations given, one needed (oodscope crossval makes one)")
    table = given[0].draws
    study = study_metric(table, HEADLINE if HEADLINE in table.metrics else table.metrics[0])
    if truth and not study.has_truth:
        raise DataError("the study has no hold-outs, so there is no benchmark truth")
    if folds and not study.has_folds:
        raise DataError("the study has no cross-validations, only hold-outs")
    if tests and not study.testable:
        raise DataError(
            f"tests over cells want {FEWEST_SETS} cells and 2 detectors; the study has {len(study.cells)} and "
            f"{len(study.detectors)}"
        )
    return study


def _matrices(study: MetricStudy, number: int) -> tuple[Sheet, list[Axes]]:
    height = 0.9 + 0.2 * len(study.detectors)
    sheet = Sheet(figsize=(PAGE, max(2.0, height)), layout="constrained")
    return sheet, list(sheet.subplots(1, number))


def _letters(study: MetricStudy, characters: int, panels: int) -> float:
    """The size at which so many characters fit a cell of the matrix."""
    cell = 72 * (PAGE / panels - 0.8) / (len(study.detectors) - 1)
    return float(np.clip(cell / (0.68 * characters), 3.0, 6.5))


def _metric(study: MetricStudy) -> str:
    return label(study.metric)


PAPER = "DCV-ROOD"
_TESTED = f"one cross-validation with hold-outs, folds and at least {FEWEST_SETS} cells"
FIGURES = (
    PaperFigure("dcv-pairs", PAPER, "Tables 5, 6", _TESTED, pairs),
    PaperFigure("dcv-counts", PAPER, "Table 6", _TESTED, counts),
    PaperFigure("dcv-agreement", PAPER, "", "one cross-validation with hold-outs and folds", agreement),
    PaperFigure("dcv-ranks", PAPER, "", f"one cross-validation of 3 detectors in at least {FEWEST_SETS} cells", ranks),
    PaperFigure("dcv-convergence", PAPER, "", "one cross-validation with two hold-outs or more", convergence),
)
