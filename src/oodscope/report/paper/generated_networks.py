"""The figures of Raising the Bar (Mukhoti et al. 2022) that show what networks do with generated images: 6, 7 and 8."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodscope.base.errors import DataError
from oodscope.document.figure import Text
from oodscope.report.paper.studies import only_study, ood_sets, studies
from oodscope.report.paper.style import GREY, PAGE, legend_above, plain_axes, style_of
from oodscope.report.render.mpl import draw
from oodscope.results.measurement import Measurement
from oodscope.results.run import Run
from oodscope.runs.generated.figures import marked, orders_of_detectors, reliability_on_set
from oodscope.runs.generated.run import WORST, GeneratedStudy
from oodscope.runs.generated.table import calibrated_sets

DETECTORS, SETS = 9, 8
"""Most panels of figures 6 and 7."""

ACROSS = 3


def auroc_by_network(runs: Sequence[Run]) -> Figure:
    """Figure 6: AUROC of each network on generated near sets (filled marks) and on real ones (open), by detector.

    A row of panels per study. Of many detectors, those that most networks have are shown, the best on generated images
    first.
    """
    found = [(study, ood_sets(study), _detectors(study)) for study in studies(runs)]
    across = min(ACROSS, max(len(detectors) for _, _, detectors in found))
    lines = [-(-len(detectors) // across) for _, _, detectors in found]
    figure = Figure(figsize=(PAGE, 0.9 + 1.45 * sum(lines)), layout="constrained")
    grid = figure.subplots(sum(lines), across, squeeze=False, sharey=True)
    for number, (study, sets, detectors) in enumerate(found):
        panels = grid[sum(lines[:number]) :][: lines[number]].ravel()
        for place, (panel, detector) in enumerate(zip(panels, detectors)):
            _networks(panel, study, sets, detector, named=place + across >= len(detectors))
            panel.set_ylabel("AUROC, %" if place % across == 0 else "")
        for panel in panels[len(detectors) :]:
            panel.axis("off")
    legend_above(figure, figure.axes[0], min(4, max(len(sets) for _, sets, _ in found)))
    return figure


def reliability_plots(runs: Sequence[Run]) -> Figure:
    """Figure 7: accuracy against confidence of each network, on ID test images and under each shift.

    Generated shifts come first; of many real ones, those with the largest calibration errors are shown. Points below
    the line are confidence that is not deserved.
    """
    study = only_study(runs)
    sets = _shifts(study)
    across = min(4, len(sets))
    lines = -(-len(sets) // across)
    side = PAGE / max(3, across)
    sheet = Figure(figsize=(side * across, 0.45 + (side + 0.2) * lines), layout="constrained")
    grid = sheet.subplots(lines, across, squeeze=False, sharex=True, sharey=True)
    for panel, name in zip(grid.flat, sets):
        figure = reliability_on_set(study, name)
        draw(panel, figure)
        panel.set_title(figure.title, fontweight="bold" if name in study.sanity.generated else "normal")
        panel.set(xlabel="", ylabel="", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for panel in grid.flat[len(sets) :]:
        panel.axis("off")
    sheet.supxlabel("confidence", fontsize=8)
    sheet.supylabel("accuracy", fontsize=8)
    legend_above(sheet, grid.flat[0], min(4, len(study.networks)))
    return sheet


def orderings(runs: Sequence[Run]) -> Figure:
    """Figure 8: a radar per network, a spoke per detector, a line per set: AUROC, stretched to [0.1, 1.1] set by set.

    Lines of one shape order detectors alike, however hard their sets are.
    """
    study = only_study(runs)
    sets = ood_sets(study)
    radars = {name: each for name in study.networks if (each := orders_of_detectors(study, name, sets)) is not None}
    if not radars:
        raise DataError("no network with three detectors; a radar needs three spokes")
    spokes = max(sum(isinstance(mark, Text) for mark in each.marks) for each in radars.values())
    across = min(3 if spokes <= 12 else 2, len(radars))
    lines, side = -(-len(radars) // across), PAGE / max(2, across)
    sheet = Figure(figsize=(side * across, 0.4 + side * lines), layout="constrained")
    grid = sheet.subplots(lines, across, squeeze=False)
    for panel, (network, figure) in zip(grid.flat, radars.items()):
        draw(panel, figure)
        panel.set_title(marked(study, network))
    for panel in grid.flat[len(radars) :]:
        panel.axis("off")
    legend_above(sheet, grid.flat[0], min(4, len(sets)))
    return sheet


def _detectors(study: GeneratedStudy) -> list[str]:
    """Those that most networks have, best mean AUROC on generated near sets first."""
    rows = [row for (_, _, name), row in study.separation("auroc").items() if name in study.sanity.near()]
    own: dict[str, list[Measurement]] = {}
    for row in rows:
        own.setdefault(row.detector, []).append(row)
    ranked = sorted(own, key=lambda name: (-len(own[name]), -float(np.mean([row.value for row in own[name]])), name))
    return ranked[:DETECTORS]


def _networks(panel: Axes, study: GeneratedStudy, sets: Sequence[str], detector: str, *, named: bool) -> None:
    """Every network has its place in all panels; one that lacks the detector leaves it empty."""
    found, step = study.separation("auroc"), min(0.16, 0.7 / len(sets))
    places = [place for place, each in enumerate(study.networks) if (each, detector, sets[0]) in found]
    for number, name in enumerate(sets):
        rows = [found[study.networks[place], detector, name] for place in places]
        values = np.array([100 * row.value for row in rows])
        ends = np.array([[100 * (row.value if end is None else end) for end in (row.low, row.high)] for row in rows]).T
        colour, marker = style_of(number)
        panel.errorbar(
            np.array(places) + (number - (len(sets) - 1) / 2) * step,
            values,
            yerr=np.abs(ends - values),
            fmt=marker,
            color=colour,
            markerfacecolor=colour if name in study.sanity.generated else "white",
            markersize=4,
            elinewidth=0.8,
            label=name,
        )
    panel.axhline(50, color=GREY, linewidth=0.7, linestyle="--")
    names = [marked(study, each) if named else "" for each in study.networks]
    panel.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    panel.set_xlim(-0.6, len(names) - 0.4)
    panel.set_title(detector)
    plain_axes(panel, "y")


def _shifts(study: GeneratedStudy) -> list[str]:
    """ID test, generated shifts, then real ones with the largest mean error, until the panels are full."""
    errors, generated = study.calibration(), study.sanity.shifted()
    if not generated:
        raise DataError("no generated shifted set in the study")
    names = [name for name in calibrated_sets(study) if name != WORST]
    first = [name for name in names if study.sanity.of(name).role == "id_test"] + generated
    mean = {name: np.mean([errors[network, name].value for network in study.networks]) for name in names}
    rest = sorted((name for name in names if name not in first), key=lambda name: -mean[name])
    return [*first, *rest][:SETS]
