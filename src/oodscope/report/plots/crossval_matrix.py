"""The matrix of a cross-validation: every detector in every experiment."""

from oodscope.report.plots.marks import heat, layout, names, square
from oodscope.report.plots.plot import PlotlyFigure, figure_name, shown
from oodscope.results.crossval import CrossValidationTable
from oodscope.results.crossval_study import study_metric
from oodscope.results.wording import LABELS, higher_is_better


def crossval_matrix(table: CrossValidationTable, metric: str = "auroc") -> PlotlyFigure:
    """The estimate of a metric for each detector (rows) and experiment (columns: ID/OOD pair and training).

    The estimate is the truth by repeated hold-outs, or the mean of the cross-validations where none were made.
    """
    study = study_metric(table, metric)
    estimate = study.estimate
    source = "mean over the hold-outs" if study.has_truth else "mean over the cross-validations"
    hover = "%{y} on %{x}: %{z:.2%}"
    # detectors differ within an experiment by less than experiments do among themselves
    places = [[int((column > value).sum()) + 1 for value, column in zip(row, estimate.T)] for row in estimate]
    if not higher_is_better(metric):
        places = [[int((column < value).sum()) + 1 for value, column in zip(row, estimate.T)] for row in estimate]
    return PlotlyFigure(
        figure_name("crossval", "matrix", metric),
        f"{LABELS.get(metric, metric)} of every detector in every experiment",
        f"The {source}, in percent, {'higher' if higher_is_better(metric) else 'lower'} is better. A pointer shows the "
        "rank among the detectors of an experiment.",
        (
            heat(
                estimate.tolist(),
                [str(cell) for cell in study.cells],
                study.detectors,
                hover + "<br>rank %{customdata} of " + str(len(study.detectors)),
                texttemplate="%{z:.1%}" if len(study.cells) <= 12 else "",
                customdata=places,
                zmin=shown(float(estimate.min())),
                zmax=shown(float(estimate.max())),
            ),
        ),
        layout(names(""), names("", autorange="reversed"), height=square(len(study.detectors)) + 60),
    )
