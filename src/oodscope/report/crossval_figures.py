"""The figures of a study by dual cross-validation: ranks, a truth that settles, and where the spread comes from."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup

from oodscope.metrics.comparison.many_sets import CriticalDifference
from oodscope.metrics.crossval.convergence import running_mean
from oodscope.report.svg import Numbers, Plot, band, box, caption, drawing, polyline, segment, style_of, x_axis, y_axis

SOURCES = {
    "id_sample": "ID sample",
    "ood_classes": "OOD classes",
    "interaction": "both together",
    "training_seed": "training seed",
}
"""The sources of variance, as the legend calls them."""

_WIDTH = 440
_LINE = 17


def critical_difference_diagram(names: Sequence[str], found: CriticalDifference, title: str) -> Markup:
    """Average ranks on a line, best to the left; a bar joins detectors that Nemenyi's test does not tell apart."""
    ranks = np.array(found.average_ranks)
    order = np.argsort(ranks, kind="stable")
    half = (len(names) + 1) // 2
    bars_at, first = 52, 52 + 9 * len(found.groups) + 14
    side = max(112, _room(f"{name} 0.00" for name in names))
    size = (_WIDTH - 224 + 2 * side, first + _LINE * half + 6)
    plot = Plot(*size, (1.0, float(len(names))), (0.0, 1.0), left=side, right=side)
    axis = 34
    marks = [segment(float(plot.across(1.0)), axis, float(plot.across(len(names))), axis, "axis")]
    for rank in range(1, len(names) + 1):
        x = float(plot.across(rank))
        marks += [segment(x, axis - 4, x, axis, "axis"), caption(x, axis - 8, str(rank), "middle")]
    start = float(plot.across(1.0))
    reach = min(float(plot.across(1.0 + found.difference)), plot.width - 4.0)
    marks += [
        segment(start, 10, reach, 10, "ruler"),
        caption(reach + 4, 14, f"critical difference {found.difference:.2f}"),
    ]
    for place, index in enumerate(order):
        x = float(plot.across(ranks[index]))
        left = place < half
        y = first + _LINE * (place if left else len(names) - 1 - place)
        end = plot.left - 6.0 if left else plot.width - plot.right + 6.0
        marks += [segment(x, axis, x, y, "leader"), segment(x, y, end, y, "leader")]
        words = f"{names[index]} {ranks[index]:.2f}" if left else f"{ranks[index]:.2f} {names[index]}"
        marks.append(caption(end + (-4 if left else 4), y + 4, words, "end" if left else "start"))
    for number, group in enumerate(found.groups):
        low, high = float(plot.across(ranks[group[0]])), float(plot.across(ranks[group[-1]]))
        height = bars_at + 9.0 * number - 8.0
        marks.append(segment(low - 4, height, high + 4, height, "joined"))
    return drawing(plot, title, marks)


def convergence_plot(hold_outs: Numbers, title: str) -> Markup:
    """How far the mean of the first n hold-outs lies from the last one, a line per detector, averaged over cells.

    The band is twice the standard error of the mean after n hold-outs, the largest of the detectors: what is still
    open at its right end stays open.

    Parameters
    ----------
    hold_outs : ``[repetition, detector, cell]``, at least 2 repetitions.
    """
    series = hold_outs.mean(axis=2)
    running = running_mean(series)
    n = np.arange(1, len(series) + 1, dtype=np.float64)
    away = 100.0 * (running.mean - running.mean[-1])
    reach = 200.0 * series.std(axis=0, ddof=1).max() / np.sqrt(n)
    top = _round_up(float(max(np.abs(away).max(), reach[1])))
    plot = Plot(_WIDTH, 230, (1.0, float(len(series))), (-top, top), left=48, bottom=36, top=10, right=10)
    steps = np.unique(np.linspace(1, len(series), min(5, len(series))).round())
    heights = [-top, -top / 2, 0.0, top / 2, top]
    lines = [polyline(plot, n, away[:, index], style_of(index)) for index in range(away.shape[1])]
    marks = [
        band(plot, n, np.maximum(-reach, -top), np.minimum(reach, top), ""),
        y_axis(plot, [(value, f"{value:+g}" if value else "0") for value in heights]),
        x_axis(plot, [(value, f"{value:.0f}") for value in steps.tolist()]),
        *lines,
        caption(plot.width - plot.right, plot.height - 6, "hold-outs", "end"),
        Markup(
            '<text transform="translate(11 {}) rotate(-90)" text-anchor="middle">points from the last mean</text>'
        ).format((plot.height - plot.bottom + plot.top) // 2),
    ]
    return drawing(plot, title, marks)


def variance_bars(components: pd.DataFrame, title: str) -> Markup:
    """A bar per detector, split by the source of its spread; components are averaged over cells, then shared out.

    Parameters
    ----------
    components : a row per detector and cell, as :func:`variance_table` makes it.
    """
    means = components.groupby("detector", sort=False, observed=True)[list(SOURCES)].mean().clip(lower=0.0)
    side = max(100, _room(means.index))
    plot = Plot(_WIDTH - 100 + side, 24 + 22 * len(means), (0.0, 1.0), (0.0, 1.0), left=side, right=74)
    marks = [x_axis(plot, [(share, f"{100 * share:.0f} %") for share in (0.0, 0.5, 1.0)])]
    for number, (detector, parts) in enumerate(means.iterrows()):
        y, total, done = 2 + 22 * number, float(parts.sum()), 0.0
        marks.append(caption(plot.left - 6, y + 13, str(detector), "end"))
        marks.append(caption(plot.width - plot.right + 6, y + 13, f"sd {100 * np.sqrt(total):.2f}"))
        for index, source in enumerate(SOURCES):
            share = float(parts[source]) / total if total > 0.0 else 0.0
            start, end = float(plot.across(done)), float(plot.across(done + share))
            words = f"{detector}: {SOURCES[source]} {100 * share:.0f} %"
            marks.append(box(start, y, end - start, 17, f"part c{index}", words))
            done += share
    return drawing(plot, title, marks)


def _room(texts: Iterable[str]) -> int:
    """Pixels that the longest text takes beside the plot."""
    return 16 + round(6.2 * max(len(str(text)) for text in texts))


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, ... times a power of ten, so that half of it is a short number too."""
    if value <= 0.0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(unit * next(step for step in (1.0, 2.0, 5.0, 10.0) if value <= step * unit * (1.0 + 1e-9)))
