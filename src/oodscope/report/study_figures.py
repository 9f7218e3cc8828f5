"""The figures of a study of many models, drawn with matplotlib for papers and slides."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodscope.base.files import atomic_path
from oodscope.results import Measurements, Study
from oodscope.results.wording import LABELS

FORMATS = ("png", "pdf", "svg")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Seven colours that colour-blind readers tell apart (Okabe and Ito 2008)."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#9A9A9A"
METRIC = "der99_val_correct"


def der_against_accuracy(study: Study, metric: str = METRIC) -> Figure:
    """A panel per detector: error rate, mean over all sets, against accuracy; a line joins models of one family."""
    detectors = study.detectors
    figure, panels = _grid(len(detectors), width=2.9, height=2.5)
    families = list(dict.fromkeys(member.model.family for member in study.members))
    for detector, panel in zip(detectors, panels):
        for index, family in enumerate(families):
            names = [member.model.name for member in study.members if member.model.family == family]
            points = sorted((100 * study.accuracy(name), 100 * study.value(name, detector, metric)) for name in names)
            colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
            panel.plot(*zip(*points), color=colour, marker=marker, markersize=5, linewidth=1, label=family or "models")
        panel.set_title(detector, fontsize=10)
    _same_scale(panels)
    figure.supxlabel("accuracy on id_test, %", fontsize=10)
    figure.supylabel(f"{LABELS[metric]}, % (lower is better)", fontsize=10)
    if len(families) > 1:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(families), frameon=False, fontsize=9)
    return figure


def strategy_heatmap(study: Study, metric: str = METRIC) -> Figure:
    """Training strategies against detectors: the error rate, mean over the models of a strategy; lighter is better."""
    detectors = study.detectors
    strategies = list(dict.fromkeys(member.model.strategy for member in study.members if member.model.strategy))
    values = np.array(
        [
            [
                np.mean([100 * study.value(m.model.name, d, metric) for m in study.members if m.model.strategy == s])
                for d in detectors
            ]
            for s in strategies
        ]
    )
    figure = Figure(figsize=(2.2 + 0.75 * len(detectors), 1.3 + 0.42 * len(strategies)), layout="constrained")
    panel = figure.add_subplot()
    image = panel.imshow(values, cmap="Blues", aspect="auto")
    panel.set_xticks(range(len(detectors)), detectors, fontsize=9)
    panel.set_yticks(range(len(strategies)), strategies, fontsize=9)
    middle = (values.min() + values.max()) / 2
    for row, column in np.ndindex(values.shape):
        colour = "white" if values[row, column] > middle else "black"
        panel.text(column, row, f"{values[row, column]:.1f}", ha="center", va="center", color=colour, fontsize=9)
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
    figure.colorbar(image, ax=panel, label=f"{LABELS[metric]}, %")
    return figure


def distillation(study: Study, metric: str = METRIC) -> Figure:
    """A panel per pair: the error rate of each detector with the plain and with the distilled network."""
    detectors = study.detectors
    pairs = [(m.model.distilled_from, m.model.name) for m in study.members if m.model.distilled_from]
    figure, panels = _grid(len(pairs), width=3.4, height=0.9 + 0.26 * len(detectors))
    heights = np.arange(len(detectors))[::-1]
    for (plain, distilled), panel in zip(pairs, panels):
        before, after = (np.array([100 * study.value(n, d, metric) for d in detectors]) for n in (plain, distilled))
        panel.hlines(heights, before, after, color=GREY, linewidth=1.5, zorder=1)
        panel.scatter(before, heights, s=34, facecolor="white", edgecolor=GREY, linewidth=1.5, label="plain", zorder=2)
        panel.scatter(after, heights, s=34, color=COLOURS[0], label="distilled", zorder=2)
        panel.set_yticks(heights, detectors, fontsize=9)
        panel.set_title(distilled, fontsize=10)
        _plain_axes(panel)
    _same_scale(panels, y=False)
    figure.supxlabel(f"{LABELS[metric]}, % (lower is better)", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def conventional_twice(measurements: Measurements, detectors: Sequence[str] | None = None) -> Figure:
    """AUROC and FPR95, means over the foreign sets, with all of ``id_test`` as ID and with its correct images only."""
    rows = measurements.filter(protocol="human_centric", group="label_shift", set="mean")
    chosen = detectors or rows.filter(metric="auroc").distinct("detector")
    figure = Figure(figsize=(2 + 1.1 * len(chosen), 3.2), layout="constrained")
    places = np.arange(len(chosen))
    for index, (metric, words) in enumerate((("auroc", "AUROC ↑"), ("fpr95_id_positive", "FPR95 (ID positive) ↓"))):
        panel = figure.add_subplot(1, 2, index + 1)
        for shift, suffix, label, colour in (
            (-0.2, "", "all ID", GREY),
            (0.2, "_correct_id", "correct ID", COLOURS[0]),
        ):
            found = [rows.filter(metric=metric + suffix, detector=name)[0] for name in chosen]
            values = np.array([100 * row.value for row in found])
            ends = np.array([[100 * (row.low or 0), 100 * (row.high or 0)] for row in found]).T
            panel.bar(places + shift, values, 0.38, color=colour, label=label)
            panel.errorbar(places + shift, values, np.abs(ends - values), fmt="none", ecolor="black", elinewidth=0.8)
        panel.set_xticks(places, chosen, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
        panel.set_title(words, fontsize=10)
        panel.set_ylabel("%")
        _plain_axes(panel, "y")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def write_study_figures(study: Study, folder: Path) -> list[Path]:
    """Every figure that the study has something for, each as PNG, PDF and SVG."""
    wanted: dict[str, Callable[[], Figure]] = {"der-against-accuracy": partial(der_against_accuracy, study)}
    if any(member.model.strategy for member in study.members):
        wanted["strategies"] = partial(strategy_heatmap, study)
    if any(member.model.distilled_from for member in study.members):
        wanted["distillation"] = partial(distillation, study)
    for member in study.members:
        if member.measurements.filter(protocol="human_centric", metric="auroc_correct_id"):
            wanted[f"conventional-{member.model.name}"] = partial(conventional_twice, member.measurements)
    return [path for name, draw in wanted.items() for path in save_figure(draw(), folder / _file_name(name))]


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure as ``stem.png``, ``stem.pdf`` and ``stem.svg``, each whole or not at all."""
    written = []
    for kind in formats:
        path = stem.with_name(f"{stem.name}.{kind}")
        with atomic_path(path) as temporary, rc_context({"svg.hashsalt": "oodscope"}):
            figure.savefig(temporary, format=kind, dpi=200, metadata=_UNDATED.get(kind))
        written.append(path)
    return written


_UNDATED: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Equal figures are equal files."""


def _grid(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    columns = min(3, count)
    lines = -(-count // columns)
    figure = Figure(figsize=(width * columns + 0.4, height * lines + 0.6), layout="constrained")
    panels = [figure.add_subplot(lines, columns, index + 1) for index in range(count)]
    for panel in panels:
        _plain_axes(panel)
    return figure, panels


def _same_scale(panels: Sequence[Axes], y: bool = True) -> None:
    """One scale for all panels, so that they can be compared by eye."""
    for axis in ("x", "y") if y else ("x",):
        ends = np.array([getattr(panel.dataLim, f"interval{axis}") for panel in panels])
        low, high = ends[:, 0].min(), ends[:, 1].max()
        margin = 0.06 * (high - low) or 1.0
        for panel in panels:
            getattr(panel, f"set_{axis}lim")(low - margin, high + margin)


def _plain_axes(panel: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis=grid, color="#E5E5E5", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=9)


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-._" else "-" for character in name)
