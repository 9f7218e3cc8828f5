"""Found parameters: where in a variation the chains of an attack ended."""

from collections.abc import Sequence

import numpy as np

from oodscope.report.plots.bins import Numbers, outline, shares
from oodscope.report.plots.marks import axis, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.report.plots.positions import detector_positions
from oodscope.runs.attack.run import Attack

BINS = 24

_HOVER = "%{fullData.name}: %{y:.1%} of its chains"


def found_parameters(attack: Attack, variation: str, detectors: Sequence[str] | None = None) -> list[PlotlyFigure]:
    """A plot for each parameter of a variation: with what values chains ended, a line for each detector.

    Empty where coordinates mean nothing, such as the pixels of a perturbation.

    Parameters
    ----------
    detectors : in the order of their colours; those of the attack by default.
    """
    places = detector_positions(detectors or attack.detectors)
    searches = {name: attack.search(name, variation) for name in places}
    parameters = next(iter(searches.values())).parameters
    found = {name: np.asarray(each.found, dtype=np.float64) for name, each in searches.items()}
    return [
        PlotlyFigure(
            figure_name("found", variation, parameter),
            f"{variation}: {parameter}",
            "Where the chains ended: share of chains in each bin. A peak at an end says that the worst images may lie "
            "beyond what the variation allows.",
            _lines({name: values[:, column] for name, values in found.items()}, places),
            layout(axis(parameter), percents("share of chains", rangemode="tozero"), height=320, hovermode="x unified"),
        )
        for column, parameter in enumerate(parameters)
    ]


def _lines(samples: dict[str, Numbers], places: dict[str, int]) -> tuple[dict[str, object], ...]:
    together = np.concatenate(list(samples.values()))
    low, high = float(together.min()), float(together.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    return tuple(
        line(*outline(edges, shares(sample, edges)), name, places[name], _HOVER, line={"shape": "hvh"})
        for name, sample in samples.items()
    )
