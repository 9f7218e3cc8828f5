"""Reliability diagrams: can a classifier's confidence be taken at its word?"""

from typing import Any

import numpy as np

from oodscope.report.plots.marks import guide, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.runs.generated.run import RELIABILITY, GeneratedStudy
from oodscope.runs.generated.table import calibrated_sets

_HOVER = "<b>%{fullData.name}</b><br>%{customdata:,} images, mean confidence %{x:.1%}<br>%{y:.1%} of them right"


def reliability_diagram(study: GeneratedStudy, network: str) -> PlotlyFigure:
    """Accuracy against confidence of one network, a line for ``id_test`` and for each shifted set.

    A bin is drawn where its images lie, at their mean confidence; a bin without images is left out.
    """
    bins = study.result(network).scores.context.extra[RELIABILITY]
    errors = study.calibration()
    known = {each.name for each in study.sanity.sets if each.role == "id_test"}
    shifted = [name for name in calibrated_sets(study) if name in bins and name not in known]
    places: dict[str, int | str] = {name: "ink" for name in bins if name in known}
    places |= {name: place for place, name in enumerate(shifted)}
    curves = [
        _curve(bins[name], f"{name} (ECE {100 * errors[network, name].value:.1f})", place)
        for name, place in places.items()
    ]
    return PlotlyFigure(
        figure_name("reliability", network),
        f"{network}: reliability",
        "Images are put into 15 bins by the classifier's confidence. Below the dotted line it is surer than it is "
        "right. The legend gives the expected calibration error (ECE, in percent, lower is better).",
        (*curves, guide([0.0, 1.0], [0.0, 1.0])),
        layout(percents("mean confidence", range=[0, 1.01]), percents("share right", range=[0, 1.01]), height=440),
    )


def _curve(bins: dict[str, list[float]], name: str, place: int | str) -> dict[str, Any]:
    count = np.asarray(bins["count"])
    filled = count > 0
    confidence, accuracy = (np.asarray(bins[key])[filled] for key in ("confidence", "accuracy"))
    images = count[filled].astype(int).tolist()
    return line(confidence, accuracy, name, place, _HOVER, mode="lines+markers", customdata=images)
