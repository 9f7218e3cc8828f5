"""Interactive plots as data: each function takes results and answers with figures that a page's script draws."""

from oodscope.report.plots.budget import auroc_against_budget
from oodscope.report.plots.convergence import convergence
from oodscope.report.plots.cost import cost_against_quality
from oodscope.report.plots.crossval_matrix import crossval_matrix
from oodscope.report.plots.disagreement import rank_correlations, verdict_differences
from oodscope.report.plots.found_parameters import found_parameters
from oodscope.report.plots.frechet import frechet_bars
from oodscope.report.plots.histograms import score_histograms
from oodscope.report.plots.information import information_histograms
from oodscope.report.plots.plot import PlotlyFigure
from oodscope.report.plots.rejection import der_curves
from oodscope.report.plots.reliability import reliability_diagram
from oodscope.report.plots.risk_coverage import risk_coverage
from oodscope.report.plots.roc import roc_of_detector, roc_of_set
from oodscope.report.plots.transfer import transfer_matrix

__all__ = [
    "PlotlyFigure",
    "auroc_against_budget",
    "convergence",
    "cost_against_quality",
    "crossval_matrix",
    "der_curves",
    "found_parameters",
    "frechet_bars",
    "information_histograms",
    "rank_correlations",
    "reliability_diagram",
    "risk_coverage",
    "roc_of_detector",
    "roc_of_set",
    "score_histograms",
    "transfer_matrix",
    "verdict_differences",
]
