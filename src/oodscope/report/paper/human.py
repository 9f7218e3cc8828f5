"""The figures of human-centric OOD detection (Zhu et al. 2022) that show numbers: 2 and 4 to 7."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.document.wording import label
from oodscope.metrics.metric import MEAN
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.fitting import only_result, results_with
from oodscope.report.paper.style import (
    COLOURS,
    COLUMN,
    GREY,
    PAGE,
    legend_above,
    plain_axes,
    same_scale,
)
from oodscope.report.render.mpl import draw, draw_heatmap
from oodscope.results.measurement import Measurements
from oodscope.results.run import Run
from oodscope.runs.models import figures
from oodscope.runs.models.run import METRICS, STUDIED, Study, study_of

METRIC = "der99_train_correct"
"""What the paper's figures show; ``der99_val_correct`` compares detectors at equal false rejection."""

CONVENTIONAL = {"auroc": "AUROC, % (higher is better)", "fpr95_id_positive": "FPR95, % (lower is better)"}


def conventional_twice(measurements: Measurements, detectors: Sequence[str] | None = None) -> Figure:
    """Figure 2: AUROC and FPR95, means over the OOD sets, with all of ``id_test`` as ID and with its correct part.

    Parameters
    ----------
    detectors : which, in this order; all, best AUROC with all ID first, unless given.
    """
    rows = measurements.filter(protocol=STUDIED, group="label_shift", set=MEAN)
    ranked = sorted(rows.filter(metric="auroc"), key=lambda row: -row.value)
    chosen = list(detectors or [row.detector for row in ranked])
    if not chosen or not rows.filter(metric="auroc_correct_id"):
        raise DataError(f"no AUROC and FPR95 under {STUDIED}; they want sets of OOD classes (near or far)")
    figure = Figure(figsize=(PAGE, max(1.8, 0.75 + 0.24 * len(chosen))), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(chosen))[::-1]
    for panel, (metric, words) in zip(panels, CONVENTIONAL.items()):
        for shift, suffix, shown, colour in (
            (0.2, "", "all ID images", "#B5B5B5"),
            (-0.2, "_correct_id", "correctly classified ID images", COLOURS[0]),
        ):
            found = [rows.filter(metric=metric + suffix, detector=name)[0] for name in chosen]
            values = np.array([100 * row.value for row in found])
            ends = np.array([[100 * (row.value if e is None else e) for e in (row.low, row.high)] for row in found]).T
            panel.barh(places + shift, values, 0.38, color=colour, label=shown)
            panel.errorbar(
                values, places + shift, xerr=np.abs(ends - values), fmt="none", ecolor="black", elinewidth=0.7
            )
        panel.set_xlabel(words)
        panel.set_xlim(0, 100)
        plain_axes(panel, "x")
    panels[0].set_yticks(places, chosen)
    panels[0].set_ylim(-0.6, len(chosen) - 0.4)
    legend_above(figure, panels[0], 2)
    return figure


def der_against_accuracy(study: Study, metric: str = METRIC) -> Figure:
    """Figure 4: a panel per detector: error rate, mean over all sets, against accuracy; a line joins a family."""
    figure, panels = _panels(study.detectors, height=1.7)
    families = {member.model.family for member in study.members}
    for detector, panel in zip(study.detectors, panels):
        draw(panel, figures.der_against_accuracy(study, detector, metric))
        panel.set(title=detector, xlabel="", ylabel="")
    same_scale(panels)
    figure.supxlabel("accuracy on id_test, %", fontsize=8)
    figure.supylabel(f"{label(metric)}, % (lower is better)", fontsize=8)
    if len(families) > 1:
        legend_above(figure, panels[0], 7)
    return figure


def robust_models(study: Study, metric: str = METRIC) -> Figure:
    """Figure 5: error rate of every detector against the radius of adversarial training, and the accuracy, dotted."""
    sheet = Figure(figsize=(COLUMN, 2.7), layout="constrained")
    panel = sheet.add_subplot()
    draw(panel, figures.robust_models(study, metric))
    legend_above(sheet, panel, 3)
    return sheet


def strategy_heatmap(study: Study, metric: str = METRIC) -> Figure:
    """Figure 6: strategies of training against detectors: error rate, mean over the models of a strategy."""
    figure = figures.strategy_heatmap(study, metric)
    wide = 1.2 + 0.42 * len(study.detectors) > COLUMN
    # the words beside the colours want this much
    height = max(1.9, 1.0 + 0.27 * len(figure.y.categories))
    sheet = Figure(figsize=(PAGE if wide else COLUMN, height), layout="constrained")
    panel = sheet.add_subplot()
    image = draw_heatmap(panel, figure)
    sheet.colorbar(image, ax=panel, label=f"{label(metric)}, %", fraction=0.06).outline.set_visible(False)
    return sheet


def distillation(study: Study, metric: str = METRIC) -> Figure:
    """Figure 7: a panel per pair: the error rate of each detector with the plain and with the distilled network."""
    detectors = study.detectors
    pairs = [(m.model.distilled_from, m.model.name) for m in study.members if m.model.distilled_from]
    if not pairs:
        raise DataError("no model has the label 'distilled_from' (the model that it is compared with)")
    figure, panels = _panels([distilled for _, distilled in pairs], height=0.55 + 0.17 * len(detectors), most=3)
    heights = np.arange(len(detectors))[::-1]
    for (plain, distilled), panel in zip(pairs, panels):
        before, after = (np.array([100 * study.value(n, d, metric) for d in detectors]) for n in (plain, distilled))
        panel.hlines(heights, before, after, color=GREY, linewidth=1.0, zorder=1)
        panel.scatter(before, heights, s=20, facecolor="white", edgecolor=GREY, linewidth=1.0, label="plain", zorder=2)
        panel.scatter(after, heights, s=20, color=COLOURS[0], label="distilled", zorder=2)
        panel.set_yticks(heights, detectors)
        panel.set_ylim(-0.6, len(detectors) - 0.4)
        panel.set_title(distilled)
    same_scale(panels, y=False)
    figure.supxlabel(f"{label(metric)}, % (lower is better)", fontsize=8)
    legend_above(figure, panels[0], 2)
    return figure


def _panels(names: Sequence[str], height: float, most: int = 4) -> tuple[Figure, list[Axes]]:
    if not names:
        raise DataError("no detector was measured with every model")
    columns = min(most if len(names) <= 3 * most else most + 2, len(names))
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(COLUMN if columns == 1 else PAGE, height * lines + 0.5), layout="constrained")
    panels = [figure.add_subplot(lines, columns, index + 1) for index in range(len(names))]
    for panel in panels:
        plain_axes(panel)
    return figure, panels


def _of_run(runs: Sequence[Run]) -> Figure:
    return conventional_twice(only_result(runs, STUDIED).measurements)


def _of_study(draw: Callable[[Study, str], Figure]) -> Callable[[Sequence[Run], str], Figure]:
    def drawn(runs: Sequence[Run], metric: str) -> Figure:
        study = study_of(results_with(runs, STUDIED, at_least=2))
        known = study.measurements.filter(protocol=STUDIED).distinct("metric")
        if metric not in known:
            raise UnknownNameError("metric", metric, [name for name in METRICS if name in known])
        return draw(study, metric)

    return drawn


PAPER = "Human-centric OOD detection"
_STUDY = f"runs of two or more models under {STUDIED}"
FIGURES = (
    PaperFigure("human-2", PAPER, "Fig. 2", f"one run under {STUDIED} with near or far sets", _of_run),
    PaperFigure("human-4", PAPER, "Fig. 4", _STUDY, _of_study(der_against_accuracy), METRIC),
    PaperFigure("human-5", PAPER, "Fig. 5", f"{_STUDY}, labelled with perturbation", _of_study(robust_models), METRIC),
    PaperFigure(
        "human-6",
        PAPER,
        "Fig. 6",
        f"{_STUDY}, labelled with strategy or of several recipes",
        _of_study(strategy_heatmap),
        METRIC,
    ),
    PaperFigure("human-7", PAPER, "Fig. 7", f"{_STUDY}, labelled with distilled_from", _of_study(distillation), METRIC),
)
