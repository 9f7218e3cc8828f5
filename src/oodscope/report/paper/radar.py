"""A radar: whether several sets put detectors in one order."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from oodscope.report.paper.style import PALE, style_of

Numbers = NDArray[np.float64]

RINGS = (0.1, 0.6, 1.1)
"""The lowest value of a set lies on the first, the highest on the last."""


def radar(panel: Axes, spokes: Sequence[str], values: Mapping[str, Numbers], generated: Sequence[str]) -> None:
    """One closed line per set, one spoke per detector; the first points up, the next follow clockwise.

    Values of each set are stretched to [0.1, 1.1], because the question is whether sets order detectors alike, not
    which set is harder.

    Parameters
    ----------
    values : by set, one value per spoke; where all are equal, there is no order, and the line lies in the middle.
    generated : sets whose lines are broad and lie below, so that a real one on the same place is seen on it.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    across, up = np.cos(angles), np.sin(angles)
    closed = np.arange(len(spokes) + 1) % len(spokes)
    for ring in RINGS:
        panel.plot(ring * across[closed], ring * up[closed], color=PALE, linewidth=0.6, zorder=0)
    for x, y, name in zip(across.tolist(), up.tolist(), spokes):
        panel.plot([0, RINGS[-1] * x], [0, RINGS[-1] * y], color=PALE, linewidth=0.6, zorder=0)
        side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
        panel.text(1.19 * x, 1.19 * y, name, ha=side, va="center", fontsize=6)
    for number, (name, line) in enumerate(values.items()):
        low, high = float(line.min()), float(line.max())
        reach = RINGS[0] + (line - low) / (high - low) if high > low else np.full(len(line), RINGS[1])
        colour, marker = style_of(number)
        width, alpha = (2.6, 0.55) if name in generated else (0.9, 1.0)
        (drawn,) = panel.plot((reach * across)[closed], (reach * up)[closed], color=colour, marker=marker, label=name)
        drawn.set(linewidth=width, alpha=alpha, markersize=3)
    panel.set_aspect("equal")
    panel.axis("off")
