"""The figures of an attack: curves over the budget, and where in a variation the worst images lie."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

import numpy as np
from markupsafe import Markup

from oodscope.report.svg import Numbers, Plot, bars, caption, drawing, polyline, x_axis, y_axis

BINS = 24
_LABEL = 0.15
"""The share of an axis that a label needs."""


def budget_curves(
    budgets: Sequence[int], curves: Mapping[str, Numbers], styles: Mapping[str, str], title: str, shares: bool
) -> Markup:
    """One falling line per detector over the logarithm of the budget.

    Parameters
    ----------
    shares : values are shares of 1, drawn from 0 to 100 percent; otherwise the axis spans what there is.
    """
    x = np.log10(np.asarray(budgets, dtype=np.float64))
    low, high = (0.0, 1.0) if shares else _whole(np.concatenate(list(curves.values())))
    right = max(float(x[-1]), float(x[0]) + 0.1)
    plot = Plot(360, 232, (float(x[0]), right), (low, high), left=44, bottom=36, top=10, right=14)
    levels = np.linspace(low, high, 5)
    marks = [
        y_axis(plot, [(level, f"{100 * level:.0f}" if shares else f"{level:.3g}") for level in levels]),
        x_axis(plot, [(log10(budget), f"{budget:,}") for budget in _decades(budgets)]),
        *(polyline(plot, x, values, styles[name]) for name, values in curves.items()),
        caption(plot.width - plot.right, plot.height - 6, "evaluations per chain", "end"),
    ]
    return drawing(plot, title, marks)


def parameter_histogram(values: Numbers, title: str, style: str) -> Markup:
    """How the parameters that the chains ended with are distributed."""
    edges = np.linspace(*_span(values), BINS + 1)
    counts, _ = np.histogram(values, bins=edges)
    plot = Plot(148, 74, (edges[0], edges[-1]), (0.0, max(1.0, float(counts.max()))), bottom=18, top=4)
    places = 2 - floor(log10(edges[-1] - edges[0]))
    middle = (edges[0] + edges[-1]) / 2
    # plus zero, because a middle just below it would be called -0
    ticks = [(value, f"{round(float(value), places) + 0.0:.3g}") for value in (edges[0], middle, edges[-1])]
    return drawing(plot, title, [bars(plot, edges, counts.astype(np.float64), style), x_axis(plot, ticks)])


def _span(values: Numbers) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _whole(values: Numbers) -> tuple[float, float]:
    low, high = floor(float(values.min())), ceil(float(values.max()))
    return float(low), float(max(high, low + 1))


def _decades(budgets: Sequence[int]) -> list[int]:
    """Labels that do not run into each other: powers of ten, and the last budget."""
    last, whole = budgets[-1], log10(budgets[-1] / budgets[0])
    tens = [budget for budget in budgets if 10 ** round(log10(budget)) == budget]
    return [*(budget for budget in tens if log10(last / budget) > _LABEL * whole), last]
