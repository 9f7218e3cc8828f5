"""Figures of a study of generated sets: confusion, disagreement, distances, reliability, and orders of detectors."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from oodscope.document.figure import (
    Axis,
    Band,
    Figure,
    Heatmap,
    Histogram,
    Line,
    Mark,
    Position,
    Text,
    figure_name,
    guide,
    matrix,
    numbers,
    positions_of,
)
from oodscope.runs.generated.run import RELIABILITY, GeneratedStudy
from oodscope.runs.generated.sanity import SetCheck
from oodscope.runs.generated.table import CIRCULAR, calibrated_sets

RINGS = (0.1, 0.6, 1.1)
"""Of a radar: the lowest value of a set lies on the first, the highest on the last."""


def confusion(check: SetCheck, class_names: Sequence[str]) -> Figure:
    """Rows: the class that images came from. Columns: the class that the judging ensemble sees; shares of a row."""
    counts = np.asarray(check.confusion, dtype=np.float64)
    share, interval = check.preserved or 0.0, check.preserved_interval
    ends = "" if interval is None else f" ({100 * interval.low:.1f}–{100 * interval.high:.1f})"
    return Figure(
        figure_name("confusion", check.name),
        f"{check.name}: class of origin against the class that judges see",
        f"{check.name}: {100 * share:.1f} % keep their class{ends}, {check.n:,} images. Rows: the class that "
        "images came from; numbers: share of the row.",
        (
            Heatmap(
                tuple(class_names),
                tuple(class_names),
                matrix(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)),
                ".0%",
                low=0.0,
                high=1.0,
                hover="{row} taken for {column}: {value:.1%}",
            ),
        ),
        Axis("class that judges see", scale="names", categories=tuple(class_names)),
        Axis("class of origin", scale="names", categories=tuple(class_names)),
    )


def information_histograms(study: GeneratedStudy) -> list[Figure]:
    """Mutual information by the judging ensemble, and by the one that images were made with where it was at hand."""
    by = {"judges": ("information", study.sanity.judges), "makers": ("made_information", study.sanity.makers)}
    return [
        _information(study, who, field, len(members))
        for who, (field, members) in by.items()
        if any(getattr(each, field) for each in study.sanity.sets if each.role == "id_test")
    ]


def reliability_of_network(study: GeneratedStudy, network: str) -> Figure:
    """Accuracy against confidence of one network, a line for ``id_test`` and for each shifted set."""
    bins = study.result(network).scores.context.extra[RELIABILITY]
    errors = study.calibration()
    known = {each.name for each in study.sanity.sets if each.role == "id_test"}
    shifted = [name for name in calibrated_sets(study) if name in bins and name not in known]
    places: dict[str, Position] = {name: "ink" for name in bins if name in known}
    places |= positions_of(shifted)
    lines = [
        _reliability(bins[name], f"{name} (ECE {100 * errors[network, name].value:.1f})", place)
        for name, place in places.items()
    ]
    return _reliabilities(
        figure_name("reliability", network),
        f"{network}: reliability",
        "The legend gives the expected calibration error (ECE, in percent, lower is better).",
        lines,
    )


def reliability_on_set(study: GeneratedStudy, name: str) -> Figure:
    """Accuracy against confidence on one set, a line for each network."""
    lines = [
        _reliability(result.scores.context.extra[RELIABILITY][name], marked(study, result.record.model), number)
        for number, result in enumerate(study.results)
    ]
    errors = study.calibration()
    values = sorted(100 * errors[network, name].value for network in study.networks)
    span = f"{values[0]:.1f}" if len(values) == 1 else f"{values[0]:.1f} to {values[-1]:.1f}"
    return _reliabilities(figure_name("reliability", "set", name), f"{name}\nECE {span} %", "", lines)


def orders_of_detectors(study: GeneratedStudy, network: str, sets: Sequence[str]) -> Figure | None:
    """A radar: one closed line for each set, one spoke for each detector; the first points up, the next clockwise.

    Values of each set are stretched to [0.1, 1.1], because the question is whether sets order detectors alike, not
    which set is harder. None where there are fewer than three detectors.
    """
    found = study.separation("auroc")
    detectors = [each for model, each, name in found if (model, name) == (network, sets[0])]
    if len(detectors) < 3:
        return None
    values = {name: [found[network, each, name].value for each in detectors] for name in sets}
    generated = ", ".join(name for name in sets if name in study.sanity.generated)
    return Figure(
        figure_name("orders", network),
        f"{network}: AUROC of each detector, stretched set by set",
        "AUROC of each detector, stretched to the same span for every set: lines of one shape order detectors alike. "
        f"Broad lines: generated ({generated}).",
        radar(detectors, values, study.sanity.generated),
        Axis(range=(-1.75, 1.75), shown=False),
        Axis(range=(-1.35, 1.35), shown=False),
        shape="equal",
    )


def radar(spokes: Sequence[str], values: Mapping[str, Sequence[float]], generated: Sequence[str]) -> tuple[Mark, ...]:
    """The marks of a radar.

    Parameters
    ----------
    values : by set, one value per spoke; where all are equal, there is no order, and the line lies in the middle.
    generated : sets whose lines are broad, so that a real one on the same place is seen beside it.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    across, up = np.cos(angles), np.sin(angles)
    closed = np.arange(len(spokes) + 1) % len(spokes)
    marks: list[Mark] = [_thin(ring * across[closed], ring * up[closed]) for ring in RINGS]
    for x, y, name in zip(across.tolist(), up.tolist(), spokes):
        marks.append(_thin([0.0, RINGS[-1] * x], [0.0, RINGS[-1] * y]))
        side: Literal["middle", "right", "left"] = "middle" if abs(x) < 0.2 else "right" if x > 0 else "left"
        marks.append(Text(1.19 * x, 1.19 * y, name, side))
    for place, (name, heights) in enumerate(values.items()):
        line = np.asarray(heights, dtype=np.float64)
        low, high = float(line.min()), float(line.max())
        reach = RINGS[0] + (line - low) / (high - low) if high > low else np.full(len(line), RINGS[1])
        weight: Any = "heavy" if name in generated else "normal"
        x, y = numbers((reach * across)[closed]), numbers((reach * up)[closed])
        marks.append(Line(name, x, y, place, "{name}", markers=True, weight=weight))
    return tuple(marks)


def marked(study: GeneratedStudy, network: str) -> str:
    """The name of a network, with a mark if it had a part in making the images."""
    return f"{network} {CIRCULAR}" if network in study.circular else network


def _thin(x: Any, y: Any) -> Line:
    return Line("", numbers(x), numbers(y), "soft", weight="thin", listed=False)


def _information(study: GeneratedStudy, who: str, field: str, members: int) -> Figure:
    sanity = study.sanity
    edges = sanity.edges(members)
    known = [each for each in sanity.sets if each.role == "id_test"]
    others = [each for each in sanity.sets if each.role not in ("id_test", "id_val") and getattr(each, field)]
    listed = [each for each in others if each.role != "csid" or each.name in sanity.generated]
    marks: list[Mark] = [_counted(getattr(each, field), numbers(edges), each.name, "id") for each in known]
    marks += [_counted(getattr(each, field), numbers(edges), each.name, place) for place, each in enumerate(listed)]
    # nearly all ID images lie in the first bin; to its height everything else would vanish
    heights = [value for mark in marks if isinstance(mark, Histogram) for value in mark.heights[1:]]
    top = max(0.05, 1.1 * max(heights))
    words = "Share of images in each bin, in nats: 0 is full agreement. The first bin may reach above the plot."
    if sanity.window is not None and who == "makers":
        marks.insert(0, Band("kept", sanity.window, (0.0, 0.0), (top, top), "best"))
        words += f" Near images were kept between {sanity.window[0]:.3g} and {sanity.window[1]:.3g}."
    return Figure(
        figure_name("information", who),
        f"Mutual information of the {who}",
        words,
        tuple(marks),
        Axis("mutual information, nats"),
        Axis("share of the set", percent=True, range=(0.0, top)),
    )


def _counted(counts: Sequence[int], edges: tuple[float, ...], name: str, position: Position) -> Histogram:
    heights = numbers(np.asarray(counts, dtype=np.float64) / max(1, sum(counts)))
    hover = "{name}: {y:.2%} of its images"
    return Histogram(name, edges, heights, position, filled=position == "id", hover=hover)


def _reliability(bins: Mapping[str, Sequence[float]], name: str, position: Position) -> Line:
    """The one definition of a reliability line: a bin is drawn where its images lie, at their mean confidence.

    A bin without images is left out.
    """
    count = np.asarray(bins["count"], dtype=np.float64)
    filled = count > 0
    confidence, accuracy = (np.asarray(bins[key])[filled] for key in ("confidence", "accuracy"))
    hover = "{name}\n{beside:,} images, mean confidence {x:.1%}\n{y:.1%} of them right"
    return Line(name, numbers(confidence), numbers(accuracy), position, hover, numbers(count[filled]), markers=True)


def _reliabilities(name: str, title: str, more: str, lines: Sequence[Line]) -> Figure:
    return Figure(
        name,
        title,
        "Images are put into 15 bins by the classifier's confidence; each point is a bin. Below the dotted line the "
        f"classifier is more confident than it is accurate. {more}".strip(),
        (guide([0.0, 1.0], [0.0, 1.0]), *lines),
        Axis("mean confidence", percent=True, range=(0.0, 1.01)),
        Axis("accuracy", percent=True, range=(0.0, 1.01)),
        shape="square",
    )
