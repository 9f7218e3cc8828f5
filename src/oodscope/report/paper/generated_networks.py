"""The figures of Raising the Bar (Mukhoti et al. 2022) that show what networks do with generated images: 6, 7 and 8."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodscope.base.errors import DataError
from oodscope.report.paper.studies import foreign, marked, only_study, studies
from oodscope.report.paper.style import GREY, PAGE, legend_above, plain_axes, style_of
from oodscope.results import Measurement
from oodscope.results.generated import RELIABILITY, WORST, GeneratedStudy
from oodscope.results.generated_table import calibration_table
from oodscope.results.opened import OpenedRuns

DETECTORS, SETS = 9, 8
"""Most panels of figures 6 and 7."""

ACROSS = 3


def auroc_by_network(runs: OpenedRuns) -> Figure:
    """Figure 6: AUROC of each network on generated near sets (filled marks) and on real ones (open), by detector.

    A row of panels per study. Of many detectors, those that most networks have are shown, the best on generated images
    first.
    """
    found = [(study, foreign(study), _detectors(study)) for study in studies(runs)]
    lines = sum(-(-len(detectors) // ACROSS) for _, _, detectors in found)
    across = min(ACROSS, max(len(detectors) for _, _, detectors in found))
    figure = Figure(figsize=(PAGE, 0.5 + 1.75 * lines), layout="constrained")
    grid = iter(figure.subplots(lines, across, squeeze=False, sharey=True))
    for study, sets, detectors in found:
        for start in range(0, len(detectors), across):
            panels = next(grid)
            panels[0].set_ylabel("AUROC, %")
            for panel, detector in zip(panels, detectors[start : start + across]):
                _networks(panel, study, sets, detector)
            for panel in panels[len(detectors[start : start + across]) :]:
                panel.axis("off")
    legend_above(figure, figure.axes[0], min(4, max(len(sets) for _, sets, _ in found)))
    return figure


def reliability_plots(runs: OpenedRuns) -> Figure:
    """Figure 7: accuracy against confidence of each network, on ID test images and under each shift.

    Generated shifts come first; of many real ones, those with the largest calibration errors are shown. Points below
    the line are confidence that is not deserved.
    """
    study = only_study(runs)
    errors = study.calibration()
    sets = _shifts(study)
    across = min(4, len(sets))
    lines = -(-len(sets) // across)
    side = PAGE / max(3, across)
    figure = Figure(figsize=(side * across, 0.45 + (side + 0.2) * lines), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False, sharex=True, sharey=True)
    for panel, name in zip(grid.flat, sets):
        panel.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.8)
        for number, result in enumerate(study.results):
            bins = {key: np.asarray(each) for key, each in result.scores.metadata[RELIABILITY][name].items()}
            filled = bins["count"] > 0
            colour, marker = style_of(number)
            words = marked(study, result.record.model)
            x, y = bins["confidence"][filled], bins["accuracy"][filled]
            panel.plot(x, y, color=colour, marker=marker, markersize=3, label=words)
        told = sorted(100 * errors[network, name].value for network in study.networks)
        span = f"{told[0]:.1f}" if len(told) == 1 else f"{told[0]:.1f} to {told[-1]:.1f}"
        weight = "bold" if name in study.sanity.generated else "normal"
        panel.set_title(f"{name}\nECE {span} %", fontweight=weight)
        panel.set_xlim(0, 1)
        panel.set_ylim(0, 1)
        panel.set_aspect("equal")
        plain_axes(panel)
    for panel in grid.flat[len(sets) :]:
        panel.axis("off")
    figure.supxlabel("confidence", fontsize=8)
    figure.supylabel("accuracy", fontsize=8)
    legend_above(figure, grid.flat[0], min(4, len(study.networks)))
    return figure


def orderings(runs: OpenedRuns) -> Figure:
    """Figure 8: a radar per network, a spoke per detector, a line per set: AUROC, stretched to [0.1, 1.1] set by set.

    Lines of one shape order detectors alike, however hard their sets are.
    """
    study = only_study(runs)
    sets, found = foreign(study), study.separation("auroc")
    spokes = {
        network: [each for model, each, name in found if (model, name) == (network, sets[0])]
        for network in study.networks
    }
    networks = [network for network in study.networks if len(spokes[network]) >= 3]
    if not networks:
        raise DataError("no network with three detectors; a radar needs three spokes")
    across = min(3 if max(map(len, spokes.values())) <= 12 else 2, len(networks))
    lines, side = -(-len(networks) // across), PAGE / max(2, across)
    figure = Figure(figsize=(side * across, 0.4 + side * lines), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False, subplot_kw={"projection": "polar"})
    for panel, network in zip(grid.flat, networks):
        values = {name: np.array([found[network, each, name].value for each in spokes[network]]) for name in sets}
        _radar(panel, spokes[network], values, study.sanity.generated)
        panel.set_title(marked(study, network), pad=14)
    for panel in grid.flat[len(networks) :]:
        panel.axis("off")
    legend_above(figure, grid.flat[0], min(4, len(sets)))
    return figure


def _detectors(study: GeneratedStudy) -> list[str]:
    """Those that most networks have, best mean AUROC on generated near sets first."""
    rows = [row for (_, _, name), row in study.separation("auroc").items() if name in study.sanity.near()]
    own: dict[str, list[Measurement]] = {}
    for row in rows:
        own.setdefault(row.detector, []).append(row)
    ranked = sorted(own, key=lambda name: (-len(own[name]), -float(np.mean([row.value for row in own[name]])), name))
    return ranked[:DETECTORS]


def _networks(panel: Axes, study: GeneratedStudy, sets: Sequence[str], detector: str) -> None:
    found = study.separation("auroc")
    networks = [each for each in study.networks if (each, detector, sets[0]) in found]
    for number, name in enumerate(sets):
        rows = [found[network, detector, name] for network in networks]
        values = np.array([100 * row.value for row in rows])
        ends = np.array([[100 * (row.value if end is None else end) for end in (row.low, row.high)] for row in rows]).T
        colour, marker = style_of(number)
        places = np.arange(len(networks)) + (number - (len(sets) - 1) / 2) * min(0.16, 0.7 / len(sets))
        face = colour if name in study.sanity.generated else "white"
        look = {"fmt": marker, "color": colour, "markerfacecolor": face, "markersize": 4, "elinewidth": 0.8}
        panel.errorbar(places, values, yerr=np.abs(ends - values), label=name, **look)
    panel.axhline(50, color=GREY, linewidth=0.7, linestyle="--")
    names = [marked(study, each) for each in networks]
    panel.set_xticks(range(len(networks)), names, rotation=30, ha="right", rotation_mode="anchor")
    panel.set_xlim(-0.6, len(networks) - 0.4)
    panel.set_title(detector)
    plain_axes(panel, "y")


def _shifts(study: GeneratedStudy) -> list[str]:
    """ID test, generated shifts, then real ones with the largest mean error, until the panels are full."""
    errors, generated = study.calibration(), study.sanity.shifted()
    if not generated:
        raise DataError("no generated shifted set in the study")
    names = [name for name in calibration_table(study).columns if name != WORST]
    first = [name for name in names if study.sanity.of(name).role == "id_test"] + generated
    mean = {name: np.mean([errors[network, name].value for network in study.networks]) for name in names}
    rest = sorted((name for name in names if name not in first), key=lambda name: -mean[name])
    return [*first, *rest][:SETS]


def _radar(panel: Axes, spokes: Sequence[str], values: dict[str, np.ndarray], generated: Sequence[str]) -> None:
    angles = 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    around = np.append(angles, angles[0])
    for number, (name, line) in enumerate(values.items()):
        low, high = float(line.min()), float(line.max())
        reach = 0.1 + (line - low) / (high - low) if high > low else np.full(len(line), 0.6)
        colour, marker = style_of(number)
        width = 1.6 if name in generated else 0.9
        panel.plot(
            around, np.append(reach, reach[0]), color=colour, marker=marker, markersize=3, linewidth=width, label=name
        )
    panel.set_theta_zero_location("N")
    panel.set_theta_direction(-1)
    panel.set_xticks(angles, spokes, fontsize=6)
    panel.set_yticks([0.1, 0.6, 1.1], ["", "", ""])
    panel.set_ylim(0, 1.15)
    panel.grid(True)
    panel.spines[:].set_visible(False)
