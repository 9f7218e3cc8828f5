"""The figures of OpenOOD v1.5 (Zhang et al. 2023) that show numbers: 1, 2, 6 and 7."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import linregress

from oodscope.base.errors import DataError
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.fitting import group_means, only_result, results_with
from oodscope.report.paper.labels import label_points
from oodscope.report.paper.style import COLOURS, COLUMN, GREY, MARKERS, PAGE, legend_above, plain_axes, style_of
from oodscope.results.measurement import Measurement
from oodscope.results.run import Run
from oodscope.runs.evaluation.run import Result
from oodscope.runs.models.run import study_of

SETTINGS = {"standard": "standard", "full_spectrum": "full-spectrum"}
GROUPS = ("near", "far")
ZERO_SHOT = ("msp", "mls")
"""The detectors of figure 2: those that a network without features of its own training can be asked for."""

_LINE, _HEAD = 0.165, 0.75
"""Inches: of one detector, and of everything above and below them."""


def standard_against_full_spectrum(runs: Sequence[Run]) -> Figure:
    """Figure 1: the mean near-OOD AUROC of each detector, and how far it falls when csid images count as ID."""
    result = only_result(runs, *SETTINGS)
    found = {protocol: group_means(result, protocol, "near") for protocol in SETTINGS}
    names = [name for name in found["standard"] if name in found["full_spectrum"]]
    names.sort(key=lambda name: found["standard"][name].value)
    figure = Figure(figsize=(COLUMN, _HEAD + _LINE * len(names)), layout="constrained")
    panel = figure.add_subplot()
    heights = np.arange(len(names))
    before, after = ([100 * found[protocol][name].value for name in names] for protocol in SETTINGS)
    panel.hlines(heights, before, after, color=GREY, linewidth=1.0, zorder=1)
    for index, (protocol, words) in enumerate(SETTINGS.items()):
        rows = [found[protocol][name] for name in names]
        _points(panel, rows, heights, COLOURS[index], MARKERS[index], words, filled=index == 0)
    panel.set_yticks(heights, names)
    panel.set_ylim(-0.7, len(names) - 0.3)
    panel.set_xlabel("near-OOD AUROC, % (higher is better)")
    plain_axes(panel, "x")
    legend_above(figure, panel, 2)
    return figure


def foundation_models(runs: Sequence[Run]) -> Figure:
    """Figure 2: a panel per detector (MSP, MLS); near and far AUROC of each model, standard and full-spectrum."""
    results = results_with(runs, *SETTINGS, at_least=2)
    names = _names(results)
    places = [(protocol, group) for protocol in SETTINGS for group in GROUPS]
    found = [{place: group_means(result, *place) for place in places} for result in results]
    for result, means in zip(results, found):
        for detector in ZERO_SHOT:
            if any(detector not in means[place] for place in places):
                raise DataError(f"run {result.record.id} lacks {detector}")
    figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
    panels = figure.subplots(1, len(ZERO_SHOT), sharey=True)
    offsets = np.linspace(-0.24, 0.24, len(results)) if len(results) > 1 else np.zeros(1)
    for detector, panel in zip(ZERO_SHOT, panels):
        for index, (name, means) in enumerate(zip(names, found)):
            rows = [means[place][detector] for place in places]
            across = np.arange(len(places)) + offsets[index]
            _points(panel, rows, across, *style_of(index), _with_accuracy(name, results[index]), upright=True)
        panel.set_xticks(range(len(places)), [f"{group}\n{SETTINGS[protocol]}" for protocol, group in places])
        panel.set_xlim(-0.5, len(places) - 0.5)
        panel.set_title(detector.upper())
        plain_axes(panel, "y")
    panels[0].set_ylabel("AUROC, % (higher is better)")
    legend_above(figure, panels[0], 4)
    return figure


def near_against_far(runs: Sequence[Run]) -> Figure:
    """Figure 6: near against far AUROC of every detector of every run, with the least-squares line and Pearson's r."""
    results = results_with(runs, "standard")
    names = _names(results)
    count = sum(len(group_means(result, "standard", "near")) for result in results)
    figure = Figure(figsize=(COLUMN, 3.1) if count <= 20 else (PAGE, 4.4), layout="constrained")
    panel = figure.add_subplot()
    points, labels = [], []
    for index, (name, result) in enumerate(zip(names, results)):
        near, far = (group_means(result, "standard", group) for group in GROUPS)
        both = [detector for detector in near if detector in far]
        own = np.array([(100 * far[detector].value, 100 * near[detector].value) for detector in both])
        colour, marker = style_of(index)
        panel.scatter(own[:, 0], own[:, 1], s=16, color=colour, marker=marker, linewidth=0, label=name, zorder=2)
        _crosses(panel, own, *([means[detector] for detector in both] for means in (far, near)), colour)
        points.append(own)
        labels += both
    far_values, near_values = np.concatenate(points).T
    if len(labels) < 3 or np.ptp(far_values) == 0.0:
        raise DataError(f"a line needs at least 3 detectors with different far AUROC; there are {len(labels)}")
    line = linregress(far_values, near_values)
    ends = np.array([far_values.min(), far_values.max()])
    sign = "+" if line.intercept >= 0 else "−"
    fit = f"near = {line.slope:.2f} far {sign} {abs(line.intercept):.1f}"
    words = f"{fit},  r = {line.rvalue:.2f}{_correlation_ends(line.rvalue, len(labels))},  n = {len(labels)}"
    panel.plot(ends, line.slope * ends + line.intercept, color=GREY, linewidth=1.0, zorder=1, label="_line")
    panel.set_title(words, fontsize=7, color="#444444")
    panel.set_xlabel("far-OOD AUROC, %")
    panel.set_ylabel("near-OOD AUROC, %")
    panel.margins(0.08)
    plain_axes(panel)
    if len(results) > 1:
        legend_above(figure, panel, 3)
    along = np.linspace(ends[0], ends[1], 60)
    label_points(
        panel, np.concatenate(points), labels, avoid=np.column_stack([along, line.slope * along + line.intercept])
    )
    return figure


def _crosses(
    panel: Axes, points: np.ndarray, across: Sequence[Measurement], up: Sequence[Measurement], colour: str
) -> None:
    """The intervals of points in both directions, thin, so that the points are seen before them."""
    for ends, draw, places in ((_reach(across), panel.hlines, points[:, 1]), (_reach(up), panel.vlines, points[:, 0])):
        values = points[:, 0 if draw == panel.hlines else 1]
        draw(places, values - ends[0], values + ends[1], color=colour, linewidth=0.4, alpha=0.5, label="_interval")


def _reach(rows: Sequence[Measurement]) -> np.ndarray:
    """How far the intervals reach to both sides of the values, in percent; nowhere where none was measured."""
    ends = [
        (row.value - row.low, row.high - row.value) if row.low is not None and row.high is not None else (0.0, 0.0)
        for row in rows
    ]
    return 100 * np.maximum(np.array(ends).T, 0.0)


def _correlation_ends(r: float, n: int) -> str:
    """The 95 % interval of Pearson's r for other detectors (Fisher 1921); nothing below four points or at |r| = 1."""
    if n < 4 or abs(r) >= 1.0:
        return ""
    reach = 1.96 / np.sqrt(n - 3)
    low, high = np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)
    return f" ({low:.2f} to {high:.2f})"


def across_architectures(runs: Sequence[Run]) -> Figure:
    """Figure 7: near and far AUROC of each detector with each network, in the order of the first network."""
    results = results_with(runs, "standard", at_least=2)
    names = _names(results)
    found = [{group: group_means(result, "standard", group) for group in GROUPS} for result in results]
    shared = [each for each in found[0]["near"] if all(each in means[group] for means in found for group in GROUPS)]
    if not shared:
        raise DataError("no detector was measured in every run")
    shared.sort(key=lambda name: found[0]["near"][name].value)
    figure = Figure(figsize=(PAGE, _HEAD + (_LINE + 0.02 * len(results)) * len(shared)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    heights = np.arange(len(shared))
    offsets = np.linspace(0.22, -0.22, len(results))
    for group, panel in zip(GROUPS, panels):
        for index, (name, means) in enumerate(zip(names, found)):
            rows = [means[group][detector] for detector in shared]
            _points(panel, rows, heights + offsets[index], *style_of(index), _with_accuracy(name, results[index]))
        panel.set_xlabel(f"{group}-OOD AUROC, %")
        panel.set_ylim(-0.7, len(shared) - 0.3)
        plain_axes(panel, "x")
        for height in heights[:-1] + 0.5:
            panel.axhline(height, color="#EFEFEF", linewidth=0.5, zorder=0)
    panels[0].set_yticks(heights, shared)
    legend_above(figure, panels[0], 4)
    return figure


def _points(
    panel: Axes,
    rows: list[Measurement],
    places: np.ndarray,
    colour: str,
    marker: str,
    label: str,
    *,
    upright: bool = False,
    filled: bool = True,
) -> None:
    """Values in percent with their intervals, along x unless ``upright``."""
    values = np.array([100 * row.value for row in rows])
    ends = np.array([[100 * (end if end is not None else row.value) for end in (row.low, row.high)] for row in rows]).T
    reach = np.abs(ends - values)
    where, error = ((places, values), {"yerr": reach}) if upright else ((values, places), {"xerr": reach})
    panel.errorbar(
        *where,
        **error,
        fmt=marker,
        color=colour,
        markerfacecolor=colour if filled else "white",
        markersize=4,
        elinewidth=0.8,
        linestyle="none",
        label=label,
        zorder=2,
    )


def _names(results: tuple[Result, ...]) -> list[str]:
    return [member.model.name for member in study_of(results).members]


def _with_accuracy(name: str, result: Result) -> str:
    rows = result.measurements.filter(protocol="standard", metric="accuracy", group="id")
    return f"{name} ({100 * rows[0].value:.1f} % accurate)" if rows else name


PAPER = "OpenOOD v1.5"
FIGURES = (
    PaperFigure(
        "openood-1",
        PAPER,
        "Fig. 1",
        "one run with near and csid sets under standard and full_spectrum",
        standard_against_full_spectrum,
    ),
    PaperFigure(
        "openood-2",
        PAPER,
        "Fig. 2",
        "runs of two or more models with msp and mls, near, far and csid sets, under standard and full_spectrum",
        foundation_models,
    ),
    PaperFigure(
        "openood-6", PAPER, "Fig. 6", "one run or more of one benchmark with near and far sets", near_against_far
    ),
    PaperFigure(
        "openood-7",
        PAPER,
        "Fig. 7",
        "runs of two or more models on one benchmark with near and far sets",
        across_architectures,
    ),
)
