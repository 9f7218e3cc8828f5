"""Figures of a study of many models: the error rates of detectors against what the models are."""

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.figure import Axis, Figure, Heatmap, Line, figure_name, matrix, numbers, positions_of
from oodscope.document.wording import label
from oodscope.runs.models.run import Study


def der_against_accuracy(study: Study, detector: str, metric: str) -> Figure:
    """Error rate of one detector, mean over all sets, against accuracy; a line joins the models of a family."""
    lines = []
    for family, place in positions_of(member.model.family for member in study.members).items():
        names = [member.model.name for member in study.members if member.model.family == family]
        points = sorted((100 * study.accuracy(name), 100 * study.value(name, detector, metric)) for name in names)
        x, y = zip(*points)
        hover = "{name}\naccuracy {x:.1f}, error rate {y:.2f}"
        lines.append(Line(family or "models", numbers(x), numbers(y), place, hover, markers=True))
    return Figure(
        figure_name("accuracy", detector, metric),
        detector,
        "A point for each model, in percent; further right is more accurate, lower is better.",
        tuple(lines),
        Axis("accuracy on id_test, %"),
        Axis(f"{label(metric)}, % (lower is better)"),
    )


def robust_models(study: Study, metric: str) -> Figure:
    """Error rate of every detector against the radius of adversarial training, and the accuracy, dotted."""
    members = [member for member in study.members if member.model.perturbation is not None]
    members.sort(key=lambda member: member.model.perturbation or 0.0)
    radii = [member.model.perturbation or 0.0 for member in members]
    if len(set(radii)) < 2:
        raise DataError("no two models with different labels 'perturbation' (the radius of adversarial training)")
    if len(set(radii)) < len(radii):
        raise DataError("two models have one 'perturbation'; a line has one model at each")
    names = [member.model.name for member in members]
    # radii are spaced evenly, as the paper does: they grow by factors, and 0 has no place on a log axis
    places = numbers(range(len(names)))
    lines = [
        Line(
            detector,
            places,
            numbers([100 * study.value(name, detector, metric) for name in names]),
            place,
            "{name}\nerror rate {y:.2f}",
            markers=True,
        )
        for place, detector in enumerate(study.detectors)
    ]
    accuracy = numbers([100 * study.accuracy(name) for name in names])
    return Figure(
        figure_name("robust", metric),
        "Error rate against the radius of adversarial training",
        "In percent; lower is better for error rates, higher for accuracy.",
        (*lines, Line("accuracy, %", places, accuracy, "ink", "{name}\n{y:.2f}", dotted=True)),
        Axis("radius of adversarial training", ticks=tuple((n, f"{each:g}") for n, each in zip(places, radii))),
        Axis(f"{label(metric)}, % (lower is better)"),
    )


def strategy_heatmap(study: Study, metric: str) -> Figure:
    """Strategies of training against detectors: error rate, mean over the models of a strategy."""
    strategies = tuple(dict.fromkeys(member.model.strategy for member in study.members if member.model.strategy))
    if len(strategies) < 2:
        raise DataError("no two models with different labels 'strategy' (how each was trained)")
    values = [
        [
            np.mean([100 * study.value(m.model.name, d, metric) for m in study.members if m.model.strategy == s])
            for d in study.detectors
        ]
        for s in strategies
    ]
    detectors = tuple(study.detectors)
    hover = "{column}, {row}: {value:.2f}"
    return Figure(
        figure_name("strategies", metric),
        f"{label(metric)} by strategy of training",
        "Mean over the models of a strategy, in percent; lower is better.",
        (Heatmap(strategies, detectors, matrix(values), ".1f", hover=hover),),
        Axis(scale="names", categories=detectors),
        Axis(scale="names", categories=strategies),
    )
