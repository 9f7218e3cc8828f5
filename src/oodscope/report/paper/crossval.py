"""The matrices of DCV-ROOD (Urrea-Castaño et al.) as figures, and the plots that its tables call for.

The paper prints tables; its own figures explain folds and show no numbers. BT is its benchmark truth, the mean of
repeated hold-outs, and DCV a dual cross-validation.
"""

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.document.wording import label
from oodscope.metrics.comparison.many_sets import FEWEST_SETS
from oodscope.metrics.crossval.convergence import running_mean
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.heatmap import heatmap
from oodscope.report.paper.style import COLUMN, GREY, PAGE, PALE, legend_above, plain_axes, style_of
from oodscope.runs.crossval.sheets import ALPHAS
from oodscope.runs.crossval.study import MetricStudy, study_metric
from oodscope.runs.opened import OpenedRuns

HEADLINE = "auroc"
ALPHA = 0.05
_FLOOR = 1e-4
"""The smallest p that the colours tell from a smaller one."""


def pairs(runs: OpenedRuns) -> Figure:
    """Tables 5 and 6 side by side: p of every pair by the truth, and how many cross-validations find it different."""
    study = _study(runs, truth=True, folds=True, tests=True)
    p = _below(study.truth_tests.p)
    counts = _below(study.counts(ALPHA).astype(np.float64))
    figure, (left, right) = _matrices(study, 2)
    names = study.detectors
    texts = np.array([["<.001" if value < 0.001 else f"{value:.3f}" for value in row] for row in p])
    size = _letters(study, 5, 2)
    shades = LogNorm(_FLOOR, 1.0, clip=True)
    heatmap(left, p, names[1:], names[:-1], texts, colours="Blues_r", norm=shades, strong=p <= ALPHA, size=size)
    left.set_title(f"BT: p of {len(study.hold_outs)} hold-outs (bold: p ≤ {ALPHA:g})")
    most = Normalize(0, len(study.folds))
    heatmap(right, counts, names[1:], names[:-1], "{:.0f}", norm=most, strong=p <= ALPHA, size=size)
    right.set_title(f"DCV: repetitions of {len(study.folds)} with p ≤ {ALPHA:g} (bold: so in BT)")
    figure.suptitle(_metric(study), fontsize=8)
    return figure


def counts(runs: OpenedRuns) -> Figure:
    """Table 6 at each α: in how many cross-validations a pair differs; bold where it differs by the truth, too."""
    study = _study(runs, truth=True, folds=True, tests=True)
    figure, panels = _matrices(study, len(ALPHAS))
    names = study.detectors
    for alpha, panel in zip(ALPHAS, panels):
        found, differ = _below(study.counts(alpha).astype(np.float64)), _below(study.truth_tests.p) <= alpha
        most, size = Normalize(0, len(study.folds)), _letters(study, 2, len(ALPHAS))
        heatmap(panel, found, names[1:], names[:-1], "{:.0f}", norm=most, strong=differ, size=size)
        rates = study.rates(alpha)
        told = [f"{rate.value:.1f}" if rate.pairs else "–" for rate in (rates.hits, rates.errors)]
        panel.set_title(f"p ≤ {alpha:g}\nhit rate {told[0]}, error rate {told[1]}")
    figure.suptitle(f"{_metric(study)}: DCV repetitions (of {len(study.folds)}) in which a pair differs", fontsize=8)
    return figure


def agreement(runs: OpenedRuns) -> Figure:
    """How far the cross-validations lie from the truth, for each detector in each cell: mean and range, in points."""
    study = _study(runs, truth=True, folds=True)
    truth = 100 * study.truth
    away = 100 * study.repetitions - truth
    figure = Figure(figsize=(COLUMN, 2.9), layout="constrained")
    panel = figure.add_subplot()
    panel.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    for index, name in enumerate(study.detectors):
        colour, marker = style_of(index)
        middle = away[:, index].mean(axis=0)
        reach = np.abs(np.stack([away[:, index].min(axis=0), away[:, index].max(axis=0)]) - middle)
        panel.errorbar(
            truth[index],
            middle,
            yerr=reach,
            fmt=marker,
            color=colour,
            markersize=3,
            elinewidth=0.5,
            label=name,
            zorder=2,
        )
    panel.set_xlabel(f"BT {_metric(study)}, mean of {len(study.hold_outs)} hold-outs, %")
    panel.set_ylabel(f"DCV − BT, points (range of {len(study.folds)})")
    plain_axes(panel)
    legend_above(figure, panel, 4)
    return figure


def ranks(runs: OpenedRuns) -> Figure:
    """Average ranks over the cells on a line, best to the left; a bar joins what Nemenyi's test does not tell apart."""
    study = _study(runs, tests=True)
    if len(study.detectors) < 3:
        raise DataError(f"average ranks want at least 3 detectors; the study has {len(study.detectors)}")
    found = study.ranks(ALPHA)
    order = np.argsort(found.average_ranks, kind="stable")
    count, half = len(order), (len(order) + 1) // 2
    bars = 0.32 * len(found.groups)
    figure = Figure(figsize=(COLUMN, 0.9 + 0.17 * (half + bars)), layout="constrained")
    panel = figure.add_subplot()
    margin = 0.42 * (count - 1)
    panel.set_xlim(1 - margin, count + margin)
    panel.set_ylim(-(half + bars + 0.4), 2.2)
    panel.axis("off")
    panel.plot([1, count], [0, 0], color="black", linewidth=0.8)
    for rank in range(1, count + 1):
        panel.plot([rank, rank], [0, 0.25], color="black", linewidth=0.8)
        panel.text(rank, 0.35, str(rank), ha="center", va="bottom", fontsize=7)
    reach = 1 + found.difference
    panel.errorbar([(1 + reach) / 2], [1.6], xerr=[found.difference / 2], color="black", capsize=2, linewidth=0.8)
    panel.text(reach + 0.02 * count, 1.6, f"CD {found.difference:.2f}", ha="left", va="center", fontsize=7)
    for number, group in enumerate(found.groups):
        low, high = (found.average_ranks[index] for index in (group[0], group[-1]))
        height = -0.35 - 0.32 * number
        panel.plot([low - 0.05, high + 0.05], [height] * 2, color="black", linewidth=2, solid_capstyle="round")
    for place, index in enumerate(order):
        rank, left = found.average_ranks[index], place < half
        height = -(bars + 0.9 + (place if left else count - 1 - place))
        end = 1 - 0.03 * count if left else count + 0.03 * count
        panel.plot([rank, rank, end], [0, height, height], color=GREY, linewidth=0.6, zorder=0)
        name = study.detectors[index]
        words = f"{name} {rank:.2f}" if left else f"{rank:.2f} {name}"
        panel.text(end, height, f" {words} ", ha="right" if left else "left", va="center", fontsize=7)
    panel.set_title(f"{_metric(study)}: average ranks over {len(study.cells)} cells, 1 is best", fontsize=8)
    return figure


def convergence(runs: OpenedRuns) -> Figure:
    """How far the mean of the first n hold-outs lies from the last one, a line per detector, averaged over cells.

    The band is twice the standard error of the mean after n hold-outs, the largest of the detectors: what is still
    open at its right end stays open.
    """
    study = _study(runs, truth=True)
    if len(study.hold_outs) < 2:
        raise DataError("a mean settles over two hold-outs or more; the study has one")
    series = study.hold_outs.mean(axis=2)
    running = running_mean(series)
    n = np.arange(1, len(series) + 1)
    away = 100 * (running.mean - running.mean[-1])
    band = 200 * series.std(axis=0, ddof=1).max() / np.sqrt(n)
    figure = Figure(figsize=(COLUMN, 2.6), layout="constrained")
    panel = figure.add_subplot()
    panel.fill_between(n, -band, band, color=PALE, linewidth=0, zorder=0)
    panel.text(len(n), band[len(n) // 2], "± 2 standard errors ", ha="right", va="bottom", fontsize=7, color="#555555")
    for index, name in enumerate(study.detectors):
        colour, marker = style_of(index)
        # marks of different lines stand side by side, each line having its share of a fifth of the width
        first = 0.2 * (1 + index / len(study.detectors))
        marked = sorted({int(share * (len(n) - 1)) for share in np.arange(first, 1.0, 0.2)})
        panel.plot(n, away[:, index], color=colour, marker=marker, markersize=3, markevery=marked, label=name)
    top = 1.05 * max(float(np.abs(away).max()), float(band[1]))
    panel.set_ylim(-top, top)
    panel.set_xlim(1, len(n))
    panel.set_xlabel("hold-outs")
    panel.set_ylabel(f"{_metric(study)}, points from last mean")
    plain_axes(panel, "y")
    legend_above(figure, panel, 4)
    return figure


def _study(runs: OpenedRuns, *, truth: bool = False, folds: bool = False, tests: bool = False) -> MetricStudy:
    """The headline metric of the one study, with all that a figure wants of it."""
    if len(runs.crossvals) != 1:
        raise DataError(f"{len(runs.crossvals)} cross-validations given, one needed (oodscope crossval makes one)")
    table = runs.crossvals[0]
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


def _matrices(study: MetricStudy, number: int) -> tuple[Figure, NDArray[np.object_]]:
    height = 0.9 + 0.2 * len(study.detectors)
    figure = Figure(figsize=(PAGE, max(2.0, height)), layout="constrained")
    return figure, figure.subplots(1, number)


def _below(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """What stands below the diagonal, without the empty row and column: a pair is told once."""
    return np.where(np.tri(len(matrix), k=-1, dtype=bool), matrix, np.nan)[1:, :-1]


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
