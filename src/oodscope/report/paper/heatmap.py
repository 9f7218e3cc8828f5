"""A matrix with its numbers written in: colour for the eye, digits for the reader."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray

from oodscope.report.paper.style import GREY


def heatmap(
    panel: Axes,
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    texts: str | NDArray[np.str_],
    *,
    colours: str | Colormap = "Blues",
    norm: Normalize | None = None,
    strong: ArrayLike = False,
    size: float = 6.5,
) -> AxesImage:
    """Draw a matrix, lighter for less; NaN stays empty.

    Parameters
    ----------
    values : ``[row, column]``.
    texts : what stands in each cell, or a format for its value.
    strong : whether a cell's text is bold; one for all, or one each.
    """
    image = panel.imshow(np.ma.masked_invalid(values), cmap=colours, norm=norm, aspect="auto")
    panel.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(rows)), rows)
    bold = np.broadcast_to(np.asarray(strong, dtype=bool), values.shape)
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        if not np.isnan(value):
            text = texts.format(value) if isinstance(texts, str) else str(texts[row, column])
            weight = "bold" if bold[row, column] else "normal"
            colour = _readable(image, float(value))
            panel.text(column, row, text, ha="center", va="center", color=colour, fontsize=size, fontweight=weight)
    # white lines between cells, which stay cells where neighbours have one colour
    panel.set_xticks(np.arange(-0.5, len(columns)), minor=True)
    panel.set_yticks(np.arange(-0.5, len(rows)), minor=True)
    panel.grid(which="minor", color="white", linewidth=0.8)
    panel.tick_params(which="both", length=0, color=GREY)
    panel.spines[:].set_visible(False)
    return image


def _readable(image: AxesImage, value: float) -> str:
    """Black or white, whichever contrasts more with the colour of a value (relative luminance)."""
    red, green, blue, _ = image.cmap(image.norm(np.asarray(value)))
    return "black" if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.18 else "white"
