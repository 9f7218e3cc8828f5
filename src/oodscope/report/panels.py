"""The panels of one detector: its histograms and ROC curves, in the colours that the whole page uses."""

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from oodscope.report.figures import histogram, roc, style_of
from oodscope.report.plots.bins import shared_edges
from oodscope.results import ScoreTable

ROLES = ("near", "far", "csid")


@dataclass(frozen=True)
class SetStyle:
    """A set as the legend shows it."""

    name: str
    role: str
    style: str


@dataclass(frozen=True)
class Panel:
    """A figure with the words below it."""

    figure: Markup
    words: str


@dataclass(frozen=True)
class DetectorPanels:
    """All figures of one detector."""

    detector: str
    histograms: list[Panel]
    curves: list[Panel]


def legend(scores: ScoreTable) -> list[SetStyle]:
    """Every set that is compared with ID, each with a style of its own."""
    named = [(name, role) for role in ROLES for name in scores.sets(role)]
    return [SetStyle(name, role, style_of(index)) for index, (name, role) in enumerate(named)]


def panels(scores: ScoreTable, detector: str) -> DetectorPanels:
    """Draw the figures of one detector."""
    sets = legend(scores)
    id_scores = scores.scores(detector, role="id_test")
    samples = {s.name: scores.scores(detector, role=s.role, set=s.name) for s in sets}
    edges = shared_edges([id_scores, *samples.values()])
    histograms = [
        Panel(histogram(id_scores, samples[s.name], edges, f"{detector}: ID and {s.name}", s.style), s.name)
        for s in sets
    ]
    ood = {s.name: samples[s.name] for s in sets if s.role != "csid"}
    shifted = [samples[s.name] for s in sets if s.role == "csid"]
    styles = {s.name: s.style for s in sets}
    curves = []
    if ood:
        curves.append(Panel(roc(id_scores, ood, styles, f"{detector}: ROC"), "ID: id_test"))
    if ood and shifted:
        pooled = np.concatenate([id_scores, *shifted])
        curves.append(Panel(roc(pooled, ood, styles, f"{detector}: ROC, csid as ID"), "ID: id_test and csid, pooled"))
    return DetectorPanels(detector, histograms, curves)
