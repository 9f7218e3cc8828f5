"""The figures of a study of generated sets: confusion, disagreement, reliability, and rankings as a radar."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from oodscope.report.svg import Numbers, Plot, bars, box, caption, drawing, polyline, segment, x_axis, y_axis

LABELLED, WRITTEN = 30, 12
"""Most classes whose names, and whose shares, are written into a confusion matrix."""

_FAINTEST = 0.005


def confusion_matrix(confusion: Sequence[Sequence[int]], class_names: Sequence[str], title: str) -> Markup:
    """Rows: the class that images came from. Columns: what they were taken for. Darker: a larger share of the row."""
    count = len(confusion)
    margin = 72 if count <= LABELLED else 8
    side = 264 / count
    plot = Plot(margin + 272, margin + 272, (0, count), (0, count), left=margin, bottom=margin, top=8, right=8)
    marks = []
    for row, line in enumerate(confusion):
        total = sum(line)
        for column, cell in enumerate(line):
            share = cell / total if total else 0.0
            if share < _FAINTEST:
                continue
            words = f"{class_names[row]} taken for {class_names[column]}: {share:.1%}" if count <= LABELLED else ""
            x, y = margin + column * side, 8 + row * side
            marks.append(box(x, y, side, side, f"heat h{round(10 * share)}", words))
            if count <= WRITTEN:
                marks.append(caption(x + side / 2, y + side / 2 + 4, f"{100 * share:.0f}", "middle"))
    frame = [(margin, 8), (margin + 264, 8), (margin + 264, 272), (margin, 272), (margin, 8)]
    marks += [segment(*start, *end, "axis") for start, end in itertools.pairwise(frame)]
    if count <= LABELLED:
        for number, name in enumerate(class_names):
            place = 8 + (number + 0.5) * side + 4
            marks.append(caption(margin - 4, place, _short(name), "end"))
            marks.append(
                Markup('<text transform="translate({} 278) rotate(-90)" text-anchor="end">{}</text>').format(
                    f"{margin - 8 + place:.1f}", _short(name)
                )
            )
    return drawing(plot, title, marks)


def information_histogram(
    known: Sequence[int],
    counts: Sequence[int],
    edges: Numbers,
    window: tuple[float, float] | None,
    title: str,
    style: str,
) -> Markup:
    """The mutual information of one set beside that of ID test images (grey), with the window that was kept."""
    shares = [np.asarray(each, dtype=np.float64) / max(1, sum(each)) for each in (known, counts)]
    # nearly all ID images lie in the first bin; to its height everything else would vanish
    top = max(0.05, float(np.sort(np.concatenate(shares))[-2]) * 1.1)
    plot = Plot(236, 116, (edges[0], edges[-1]), (0.0, top), top=14)
    marks = []
    if window is not None:
        left, right = (float(plot.across(min(end, edges[-1]))) for end in window)
        words = f"kept: {window[0]:.2f} to {window[1]:.2f}"
        marks += [box(left, 14, right - left, 82, "window", words), caption(left, 10, words)]
    heights = [np.minimum(share, top) for share in shares]
    ticks = [(value, f"{value:.2g}") for value in (0.0, edges[-1] / 2, edges[-1])]
    return drawing(
        plot,
        title,
        [*marks, bars(plot, edges, heights[0], "id"), bars(plot, edges, heights[1], style), x_axis(plot, ticks)],
    )


def reliability_diagram(bins: Mapping[str, Sequence[float]], title: str, style: str) -> Markup:
    """Accuracy of the images of each bin of confidence; on the dotted line confidence can be taken at its word."""
    count = np.asarray(bins["count"], dtype=np.float64)
    accuracy = np.where(count > 0, np.nan_to_num(np.asarray(bins["accuracy"], dtype=np.float64)), 0.0)
    plot = Plot(176, 168, (0.0, 1.0), (0.0, 1.0), left=30, bottom=32, top=8, right=8)
    percents = [(share, f"{100 * share:.0f}") for share in (0.0, 0.5, 1.0)]
    ends = np.array([0.0, 1.0])
    marks = [
        y_axis(plot, percents),
        bars(plot, np.linspace(0, 1, len(count) + 1), accuracy, style),
        polyline(plot, ends, ends, "chance"),
        polyline(plot, np.linspace(0, 1, len(count) * 2 + 1)[1::2], count / max(1.0, float(count.sum())), "share"),
        x_axis(plot, percents),
        caption(plot.width - plot.right, plot.height - 4, "% confidence", "end"),
    ]
    return drawing(plot, title, marks)


def radar(values: Mapping[str, Numbers], axes: Sequence[str], styles: Mapping[str, str], title: str) -> Markup:
    """One closed line per set, one axis per detector; values of each set are stretched to [0.1, 1.1].

    Stretched, because the question is whether sets order detectors alike, not which set is harder.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(axes)) / len(axes)
    plot = Plot(440, 300, (-2.2, 2.2), (-1.5, 1.5), left=0, bottom=0, top=0, right=0)
    across, down = np.cos(angles), np.sin(angles)
    closed = np.arange(len(axes) + 1) % len(axes)

    def place(x: float, y: float) -> tuple[float, float]:
        return float(plot.across(x)), float(plot.down(y))

    marks = []
    for x, y, name in zip(across.tolist(), down.tolist(), axes):
        marks.append(segment(*place(0, 0), *place(1.1 * x, 1.1 * y), "grid"))
        anchor = "middle" if abs(x) < 0.05 else "start" if x > 0 else "end"
        left, top = place(1.18 * x, 1.18 * y)
        marks.append(caption(left, top + 4, name, anchor))
    for radius in (0.1, 0.6, 1.1):
        corners = [place(radius * across[i], radius * down[i]) for i in closed]
        marks += [segment(*start, *end, "grid") for start, end in itertools.pairwise(corners)]
    for name, line in values.items():
        low, high = float(line.min()), float(line.max())
        reach = 0.1 + (line - low) / (high - low) if high > low else np.full(len(line), 0.6)
        marks.append(polyline(plot, (reach * across)[closed], (reach * down)[closed], styles[name]))
    return drawing(plot, title, marks)


def _short(name: str) -> str:
    return name if len(name) <= 9 else f"{name[:8]}…"
