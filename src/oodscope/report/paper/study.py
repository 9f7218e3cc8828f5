"""The figures of a study of many models, as files for papers and slides."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from oodscope.report.paper import human
from oodscope.report.paper.style import house_style, save_figure
from oodscope.runs.models.run import STUDIED, Study


def write_study_figures(study: Study, folder: Path) -> list[Path]:
    """Every figure that the study has something for, each as PNG, PDF and SVG."""
    models = [member.model for member in study.members]
    drawn: dict[str, Callable[[Study, str], Figure]] = {"der-against-accuracy": human.der_against_accuracy}
    if len({model.strategy for model in models if model.strategy}) > 1:
        drawn["strategies"] = human.strategy_heatmap
    if len({model.perturbation for model in models if model.perturbation is not None}) > 1:
        drawn["robust-models"] = human.robust_models
    if any(model.distilled_from for model in models):
        drawn["distillation"] = human.distillation
    # the rule of the paper, and the one at which detectors reject the same share of correct images
    measured = study.measurements.filter(protocol=STUDIED).distinct("metric")
    wanted: dict[str, Callable[[], Figure]] = {
        f"{name}-{rule.replace('_', '-')}": partial(draw, study, f"der99_{rule}")
        for name, draw in drawn.items()
        for rule in ("train_correct", "val_correct")
        if f"der99_{rule}" in measured
    }
    for member in study.members:
        if member.measurements.filter(protocol=STUDIED, metric="auroc_correct_id"):
            wanted[f"conventional-{member.model.name}"] = partial(human.conventional_twice, member.measurements)
    with house_style():
        return [path for name, draw in wanted.items() for path in save_figure(draw(), folder / _file_name(name))]


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-._" else "-" for character in name)
