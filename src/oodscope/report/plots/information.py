"""Mutual information: how far the members of an ensemble disagree about the images of a set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oodscope.report.plots.bins import Numbers, outline
from oodscope.report.plots.marks import Colour, axis, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.runs.generated.run import GeneratedStudy

_HOVER = "%{fullData.name}: %{y:.2%} of its images"


def information_histograms(study: GeneratedStudy) -> list[PlotlyFigure]:
    """One plot by the judging ensemble, and one by the ensemble that images were made with where it was at hand."""
    by = {"judges": ("information", study.sanity.judges), "makers": ("made_information", study.sanity.makers)}
    return [
        _histogram(study, who, field, len(members))
        for who, (field, members) in by.items()
        if any(getattr(each, field) for each in study.sanity.sets if each.role == "id_test")
    ]


def _histogram(study: GeneratedStudy, who: str, field: str, members: int) -> PlotlyFigure:
    sanity = study.sanity
    edges = sanity.edges(members)
    known = [each for each in sanity.sets if each.role == "id_test"]
    others = [each for each in sanity.sets if each.role not in ("id_test", "id_val") and getattr(each, field)]
    shown_sets = [each for each in others if each.role != "csid" or each.name in sanity.generated]
    curves = [_curve(getattr(each, field), edges, each.name, "id", fill="tozeroy") for each in known]
    curves += [_curve(getattr(each, field), edges, each.name, place) for place, each in enumerate(shown_sets)]
    # nearly all ID images lie in the first bin; to its height everything else would vanish
    heights = sorted(value for curve in curves for value in curve["y"][2:])
    top = max(0.05, 1.1 * float(heights[-1]))
    words = "Share of the images of a set in each bin, in nats: 0 is full agreement. "
    if sanity.window is not None and who == "makers":
        curves.append(_window(sanity.window, top))
        words += f"Near images were kept between {sanity.window[0]:.3g} and {sanity.window[1]:.3g}."
    return PlotlyFigure(
        figure_name("information", who),
        f"Mutual information of the {who}",
        words.strip(),
        tuple(curves),
        layout(
            axis("mutual information, nats", hoverformat=".3~g"),
            percents("share of the set", range=[0, top]),
            hovermode="x unified",
        ),
    )


def _curve(counts: Sequence[int], edges: Numbers, name: str, colour: Colour, **more: Any) -> dict[str, Any]:
    heights = np.asarray(counts, dtype=np.float64) / max(1, sum(counts))
    shape = {"shape": "hvh", "width": 0} if "fill" in more else {"shape": "hvh"}
    return line(*outline(edges, heights), name, colour, _HOVER, line=shape, **more)


def _window(ends: tuple[float, float], top: float) -> dict[str, Any]:
    low, high = ends
    corners = [low, low, high, high], [0.0, top, top, 0.0]
    return line(*corners, "kept", "best", "", fill="toself", line={"width": 0}, hoverinfo="skip")
