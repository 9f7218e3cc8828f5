"""Names beside points, without one lying on another: greedy, nearest free place first."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from oodscope.report.paper.look import named
from oodscope.report.paper.style import renderer_of

_DISTANCES = (4, 9, 15, 22, 30)
_ANGLES = np.deg2rad([0, 180, 45, 135, -45, -135, 90, -90, 20, 160, -20, -160])
_LEADER = 9
"""Points: a name this far away or farther is joined to its point by a line."""


def label_points(
    panel: Axes, points: NDArray[np.float64], names: Sequence[str], *, avoid: NDArray[np.float64], size: float = 6
) -> list[str]:
    """Write each name at the nearest place where it covers no point and no other name; which names found one.

    Where none is free the point stays without a name: an unread name is better than two that cannot be read.

    Parameters
    ----------
    points : ``[N, 2]`` in the data of the panel.
    avoid : ``[M, 2]``, further places that no name may cover, such as those along a line.
    size : of the letters.
    """
    names = [named(name) for name in names]
    figure = panel.figure
    assert isinstance(figure, Figure)
    renderer = renderer_of(figure)
    figure.draw_without_rendering()
    dots = panel.transData.transform(points)
    scale = figure.dpi / 72
    taken = [_around(dot, 2 * scale) for dot in dots]
    taken += [_around(dot, 0.5 * scale) for dot in panel.transData.transform(avoid)]
    frame, placed = panel.get_window_extent(renderer), []
    for number in np.argsort(-dots[:, 1], kind="stable"):
        for distance, angle in ((d, a) for d in _DISTANCES for a in _ANGLES):
            text = _written(panel, names[number], points[number], distance, float(angle), size)
            text.update_positions(renderer)
            box = Text.get_window_extent(text, renderer)  # of the words alone, without the line to the point
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box.padded(scale))
                placed.append(names[number])
                break
            text.remove()
    return placed


def _around(dot: NDArray[np.float64], reach: float) -> Bbox:
    return Bbox.from_extents(dot[0] - reach, dot[1] - reach, dot[0] + reach, dot[1] + reach)


def _written(
    panel: Axes, name: str, point: NDArray[np.float64], distance: float, angle: float, size: float
) -> Annotation:
    across, up = np.cos(angle), np.sin(angle)
    leader = {"arrowstyle": "-", "color": "#A0A0A0", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
    return panel.annotate(
        name,
        (float(point[0]), float(point[1])),
        xytext=(distance * across, distance * up),
        textcoords="offset points",
        ha="left" if across > 0.3 else "right" if across < -0.3 else "center",
        va="bottom" if up > 0.5 else "top" if up < -0.5 else "center",
        fontsize=size,
        color="#333333",
        arrowprops=leader if distance >= _LEADER else None,
        zorder=3,
    )
