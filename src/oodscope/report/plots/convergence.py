"""Convergence of the truth: how a mean over hold-outs settles while more of them are made."""

from typing import Any

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.wording import label
from oodscope.metrics.crossval.convergence import running_mean
from oodscope.report.plots.bins import Numbers
from oodscope.report.plots.marks import axis, layout, line
from oodscope.report.plots.plot import PlotlyFigure, figure_name, shown
from oodscope.report.plots.positions import detector_positions
from oodscope.report.plots.thinning import thin
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric

_HOVER = "<b>%{fullData.name}</b><br>after %{x} hold-outs %{y:+.3f} points from the last mean"


def convergence(table: CrossValidationTable, metric: str = "auroc") -> PlotlyFigure:
    """How far the mean of the first n hold-outs lies from the last one, a line for each detector, averaged over cells.

    The area is twice the standard error of the mean after n hold-outs, the largest of the detectors.
    """
    hold_outs = study_metric(table, metric).hold_outs
    if len(hold_outs) < 2:
        raise DataError("convergence needs at least 2 complete hold-outs; the table holds fewer")
    series = hold_outs.mean(axis=2)
    away = 100.0 * (running_mean(series).mean - series.mean(axis=0))
    n = np.arange(1, len(series) + 1, dtype=np.float64)
    reach = 200.0 * float(series.std(axis=0, ddof=1).max()) / np.sqrt(n)
    places = detector_positions(table.detectors)
    top = 1.05 * max(float(np.abs(away[1:]).max()), float(reach[1]))
    curves = [_curve(n, away[:, place], name, place, top) for name, place in places.items()]
    named = label(metric)
    return PlotlyFigure(
        figure_name("convergence", metric),
        f"How the truth settles: {named}",
        f"Mean over {len(table.cells)} experiments of the first n hold-outs, in points from the mean of all "
        f"{len(series):,}. The area is twice the standard error after n hold-outs: what is still open at its right end "
        "stays open.",
        (_area(n, reach), *curves),
        layout(
            axis("hold-outs"),
            axis("points from the last mean", range=shown([-top, top]), zeroline=True),
            meta={"log_axis": "x", "log_range": shown([0.0, np.log10(len(series))])},
        ),
    )


def _curve(n: Numbers, away: Numbers, name: str, place: int, top: float) -> dict[str, Any]:
    linear = (n - 1) / (n[-1] - 1)
    kept = thin((linear, away / (2 * top)), (np.log(n) / np.log(n[-1]), away / (2 * top)))
    return line(n[kept], away[kept], name, place, _HOVER)


def _area(n: Numbers, reach: Numbers) -> dict[str, Any]:
    # drawn there and back, so that one trace has both ends
    some = np.unique(np.geomspace(1, len(n), 60).round().astype(int)) - 1
    x, y = n[some], reach[some]
    both = np.concatenate([x, x[::-1]]), np.concatenate([y, -y[::-1]])
    return line(*both, "± 2 standard errors", "id", "", fill="toself", line={"width": 0}, hoverinfo="skip")
