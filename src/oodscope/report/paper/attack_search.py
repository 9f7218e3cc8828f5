"""Figure 2 of evaluation via generation (Yoon et al. 2022): why a search samples instead of descending."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from oodscope.base.errors import DataError
from oodscope.report.paper.style import PAGE, legend_above, plain_axes, style_of
from oodscope.results.opening import of_kind
from oodscope.results.run import Run
from oodscope.runs.attack.run import Attack, Landscape

SAMPLERS = {"mh": "Metropolis–Hastings", "coordinate": "coordinate descent", "random": "random search"}
"""Samplers as a paper calls them; others keep their names."""

_LEVELS = 14


def search_figure(runs: Sequence[Run]) -> Figure:
    """Figure 2. Left: one outlier's score over two coordinates, with the paths of two samplers from the image as it is.

    Right: the lowest score within so many evaluations, mean over source images; the band reaches from the least to the
    largest.
    """
    attacks = of_kind(runs, Attack)
    seen = [each.landscape for each in attacks if each.landscape is not None]
    if not attacks:
        raise DataError("no attack among these runs")
    if not seen:
        raise DataError(
            "no landscape was kept; repeat the command of the attack with --landscape, searches are not repeated"
        )
    if len(seen) > 1:
        raise DataError(f"{len(seen)} landscapes given, one needed")
    figure = Figure(figsize=(PAGE, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    _map(figure, left, seen[0])
    _falling(right, seen[0])
    legend_above(figure, right, len(seen[0].lowest))
    return figure


def _map(figure: Figure, panel: Axes, land: Landscape) -> None:
    shades = panel.contourf(land.x, land.y, land.scores, _LEVELS, cmap="Greys", alpha=0.75)
    figure.colorbar(shades, ax=panel, label="score, standardised")
    for name, path in land.paths.items():
        colour, marker = _look(land, name)
        panel.plot(path[:, 0], path[:, 1], color=colour, linewidth=0.6, alpha=0.75, marker=".", markersize=1.5)
        best = path[np.argmin(path[:, 2])]
        panel.plot(*best[:2], color=colour, marker=marker, markersize=7, markeredgecolor="white", linestyle="none")
    start = next(iter(land.paths.values()))[0]
    panel.plot(*start[:2], color="white", marker="o", markersize=5, markeredgecolor="black", linestyle="none")
    panel.set_xlabel(land.coordinates[0])
    panel.set_ylabel(land.coordinates[1])
    panel.set_title(f"{land.detector}, {land.variation}: paths from the image (○) to their lowest score")


def _falling(panel: Axes, land: Landscape) -> None:
    for name, lowest in land.lowest.items():
        colour, marker = _look(land, name)
        words = SAMPLERS.get(name, name)
        least, most = lowest.min(axis=1), lowest.max(axis=1)
        panel.fill_between(land.budgets, least, most, color=colour, alpha=0.06, linewidth=0)
        for end in (least, most):
            panel.plot(land.budgets, end, color=colour, linewidth=0.6, linestyle=":")
        panel.plot(land.budgets, lowest.mean(axis=1), color=colour, marker=marker, markersize=3.5, label=words)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("evaluations per image")
    panel.set_ylabel("lowest score, standardised")
    count = next(iter(land.lowest.values())).shape[1]
    panel.set_title(f"{land.detector}, {land.variation}: {count} images, mean and range")
    plain_axes(panel)


def _look(land: Landscape, name: str) -> tuple[str, str]:
    """One colour and one marker for a sampler in both panels."""
    return style_of(list(land.lowest).index(name))
