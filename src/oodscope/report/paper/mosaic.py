"""A mosaic: small pictures in rows, with thin gaps, a word under each and a name beside each row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

GAP, WORD = 0.06, 0.24
"""Widths of a picture: the gap between two of them, and the height of a line of words."""

LETTERS = 5.5


def mosaic(
    panel: Axes,
    rows: Sequence[tuple[str, Sequence[Picture]]],
    words: Sequence[Sequence[str]] = (),
    *,
    named: bool = True,
) -> None:
    """Fill a panel with pictures, pixel by pixel; all rows have pictures of one size.

    Parameters
    ----------
    rows : a name and pictures ``[H, W, C]``, from the top.
    words : what stands under each picture, row by row; nothing unless given.
    named : whether the names are written; panels side by side share those of the first.
    """
    height, width = rows[0][1][0].shape[:2]
    tall, pitch = height / width, height / width + GAP + (WORD if words else 0)
    for number, (name, pictures) in enumerate(rows):
        top = -number * pitch
        for place, picture in enumerate(pictures):
            left = place * (1 + GAP)
            panel.imshow(_shown(picture), extent=(left, left + 1, top - tall, top), **_PLAIN)
            if words:
                style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": LETTERS}
                panel.text(left + 0.5, top - tall - 0.04, words[number][place], **style)
        if named:
            panel.text(-0.15, top - tall / 2, name, ha="right", va="center", fontsize=7)
    longest = max(len(pictures) for _, pictures in rows)
    panel.set_xlim(0, longest * (1 + GAP) - GAP)
    panel.set_ylim(-len(rows) * pitch, 0)
    panel.set_aspect("equal")
    panel.axis("off")


def size_of(rows: int, columns: int, picture: Picture, words: bool, width: float) -> float:
    """The height in inches of a mosaic that is so many inches wide."""
    tall, wide = picture.shape[:2]
    height: float = width * rows * (tall / wide + GAP + WORD * words) / (columns * (1 + GAP) - GAP)
    return height


def names_width(names: Sequence[str]) -> float:
    """Inches that the names beside the rows of a mosaic take; none, if there are no names."""
    return 0.15 + 0.066 * max(map(len, names)) if names else 0.0


_PLAIN: dict[str, Any] = {"interpolation": "nearest", "cmap": "gray", "vmin": 0, "vmax": 255}


def _shown(picture: Picture) -> Picture:
    return picture[..., 0] if picture.shape[-1] == 1 else picture
