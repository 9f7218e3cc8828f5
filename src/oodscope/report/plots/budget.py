"""AUROC against the budget of an attack: what a longer search takes from a detector."""

from collections.abc import Sequence

from oodscope.report.plots.marks import axis, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.report.plots.positions import detector_positions
from oodscope.runs.attack.run import BUDGET, Attack

_HOVER = "<b>%{fullData.name}</b><br>AUROC %{y:.2%} after %{x:,} evaluations"


def auroc_against_budget(attack: Attack, variation: str, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """What is left of each detector after so many evaluations per chain.

    Parameters
    ----------
    detectors : in the order of their colours; those of the attack by default.
    """
    rows = attack.result.measurements.filter(protocol=BUDGET, group=variation, metric="auroc")
    curves = []
    for detector, place in detector_positions(detectors or attack.detectors).items():
        own = sorted((int(row.set), row.value) for row in rows.filter(detector=detector))
        if own:
            budgets, values = zip(*own)
            curves.append(line(budgets, values, detector, place, _HOVER, mode="lines+markers"))
    return PlotlyFigure(
        figure_name("budget", variation),
        f"{variation}: AUROC against the budget of the search",
        "Evaluations of the detector per chain, on a logarithmic axis. Higher is better for the detector; a line that "
        "still falls at its right end says that a longer search would find worse.",
        tuple(curves),
        layout(axis("evaluations per chain", type="log", dtick=1), percents("AUROC", range=[0, 1.02])),
    )
