"""The matrix of a cross-validation: every detector in every experiment."""

from oodscope.document.wording import higher_is_better, label
from oodscope.report.plots.marks import heat, layout, names, square
from oodscope.report.plots.plot import PlotlyFigure, figure_name, shown
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric


def crossval_matrix(table: CrossValidationTable, metric: str = "auroc") -> PlotlyFigure:
    """The estimate of a metric for each experiment (rows: ID/OOD pair and training) and detector (columns).

    The estimate is the truth by repeated hold-outs, or the mean of the cross-validations where none were made.
    """
    study = study_metric(table, metric)
    estimate = study.estimate
    source = "mean over the hold-outs" if study.has_truth else "mean over the cross-validations"
    hover = f"%{{x}} on %{{y}}: %{{z:.2%}}<br>rank %{{customdata}} of {len(study.detectors)}"
    better = estimate if higher_is_better(metric) else -estimate
    ranks = 1 + (better[None, :, :] > better[:, None, :]).sum(axis=1)
    return PlotlyFigure(
        figure_name("crossval", "matrix", metric),
        f"{label(metric)} of every detector in every experiment",
        f"The {source}, in percent, {'higher' if higher_is_better(metric) else 'lower'} is better. A pointer shows the "
        "rank among the detectors of an experiment.",
        (
            heat(
                estimate.T.tolist(),
                study.detectors,
                [str(cell) for cell in study.cells],
                hover,
                customdata=ranks.T.tolist(),
                written=".1%",
                zmin=shown(float(estimate.min())),
                zmax=shown(float(estimate.max())),
            ),
        ),
        layout(names(""), names("", autorange="reversed"), height=square(len(study.cells))),
    )
