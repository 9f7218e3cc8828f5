"""Fréchet distances: how far each set lies from the training images."""

from typing import Any

from oodscope.report.plots.marks import axis, layout, names
from oodscope.report.plots.plot import PlotlyFigure, plain, shown
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.generated.sanity import SetCheck


def frechet_bars(study: GeneratedStudy) -> PlotlyFigure | None:
    """A bar for each set, nearest first, generated sets in a colour of their own; None where nothing was measured."""
    sanity = study.sanity
    measured = sorted((each for each in sanity.sets if each.frechet is not None), key=lambda each: each.frechet or 0.0)
    if not measured:
        return None
    kinds = {
        "generated": [each for each in measured if each.name in sanity.generated],
        "real": [each for each in measured if each.name not in sanity.generated],
    }
    order = [plain(each.name) for each in measured]
    return PlotlyFigure(
        "frechet",
        "Distance from the training images (Fréchet)",
        f"In the features of {sanity.features}, {sanity.frechet_images:,} images of each set: 0 is the same "
        "distribution. Near sets should lie between ID test images and far sets.",
        tuple(_bars(kind, rows, colour) for colour, (kind, rows) in enumerate(kinds.items()) if rows),
        layout(
            axis("Fréchet distance", rangemode="tozero"),
            names("", autorange="reversed", categoryorder="array", categoryarray=order),
            height=120 + 26 * len(measured),
        ),
    )


def _bars(kind: str, rows: list[SetCheck], colour: int) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "x": [shown(each.frechet or 0.0) for each in rows],
        "y": [plain(each.name) for each in rows],
        "customdata": [each.role for each in rows],
        "hovertemplate": "<b>%{y}</b> (%{fullData.name}, %{customdata})<br>Fréchet distance %{x:.4~g}<extra></extra>",
        "meta": {"colour": colour if kind == "generated" else "id"},
    }
