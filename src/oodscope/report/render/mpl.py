"""From a figure to matplotlib, in the style of papers: sizes of columns, colours and marks that survive print."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure as Sheet
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, PercentFormatter

from oodscope.document.figure import Axis, Band, Bars, Figure, Heatmap, Histogram, Line, Mark, Points, Position, Text
from oodscope.report.paper.style import COLOURS, COLUMN, GREY, PAGE, PALE, legend_above, plain_axes, style_of

_NAMED: dict[str, str] = {"id": "#B5B5B5", "ink": "black", "soft": GREY, "best": COLOURS[0]}
_WEIGHTS = {"thin": 0.7, "normal": 1.0, "heavy": 2.0}
_SIDES = {
    "left": ("right", "center"),
    "right": ("left", "center"),
    "above": ("center", "bottom"),
    "below": ("center", "top"),
    "middle": ("center", "center"),
}
_FEW = 6
"""Points of a line from which on it is marked here and there, so that it can be identified without its colour."""

_READABLE = 0.18
"""The relative luminance below which white words contrast more than black ones."""


def mpl_figure(figure: Figure) -> Sheet:
    """The figure on a sheet of its own, as wide as a column, or as a page where a matrix needs it."""
    sheet = Sheet(figsize=(PAGE if _wide(figure) else COLUMN, _height(figure)), layout="constrained")
    panel = sheet.add_subplot()
    draw(panel, figure)
    panel.set_title(figure.title, wrap=True)
    if figure.legend and len(panel.get_legend_handles_labels()[1]) > 1:
        legend_above(sheet, panel, 3)
    return sheet


def draw(panel: Axes, figure: Figure) -> None:
    """All marks and both axes of a figure, without its title and legend."""
    for mark in figure.marks:
        _draw(panel, mark, figure)
    _draw_bars(panel, figure)
    if not any(isinstance(mark, Heatmap) for mark in figure.marks):
        plain_axes(panel, "x" if figure.y.scale == "names" else "both")
    for name, axis in (("x", figure.x), ("y", figure.y)):
        _set_axis(panel, name, axis)
    if not figure.x.shown and not figure.y.shown:
        panel.axis("off")
    if figure.shape == "equal":
        panel.set_aspect("equal")


def draw_heatmap(
    panel: Axes,
    figure: Figure,
    *,
    scale: float = 1.0,
    written: str | None = None,
    colours: str | Colormap | None = None,
    norm: Normalize | None = None,
    size: float = 6.5,
) -> AxesImage:
    """The matrix of a figure with its numbers written in, lighter for less; what has no number stays empty.

    Parameters
    ----------
    scale : factor of all numbers, such as 100 for percent.
    written : format of a number, the figure's own unless given; empty for none.
    colours, norm : matplotlib's, in place of blues from the lowest to the highest.
    size : of the letters.
    """
    (mark,) = (mark for mark in figure.marks if isinstance(mark, Heatmap))
    values = scale * np.array([[np.nan if each is None else each for each in row] for row in mark.values])
    low, high = (None if end is None else scale * end for end in (mark.low, mark.high))
    shades = colours or ("RdBu" if mark.diverging else "Blues")
    image = panel.imshow(np.ma.masked_invalid(values), cmap=shades, norm=norm or Normalize(low, high), aspect="auto")
    panel.set_xticks(range(len(mark.columns)), mark.columns, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(mark.rows)), mark.rows)
    pattern = mark.written if written is None else written
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        text = mark.texts[row][column] if mark.texts else f"{value:{pattern}}" if pattern else ""
        if not np.isnan(value) and text:
            weight = "bold" if mark.strong and mark.strong[row][column] else "normal"
            colour = _readable(image, value)
            panel.text(column, row, text, ha="center", va="center", color=colour, fontsize=size, fontweight=weight)
    # white lines between cells, which stay cells where neighbours have one colour
    panel.set_xticks(np.arange(-0.5, len(mark.columns)), minor=True)
    panel.set_yticks(np.arange(-0.5, len(mark.rows)), minor=True)
    panel.grid(which="minor", color="white", linewidth=0.8)
    panel.tick_params(which="both", length=0, color=GREY)
    panel.spines[:].set_visible(False)
    return image


def look_of(position: Position) -> tuple[str, str]:
    """Colour and marker of a series."""
    return style_of(position) if isinstance(position, int) else (_NAMED[position], "")


def _draw(panel: Axes, mark: Mark, figure: Figure) -> None:
    match mark:
        case Line():
            _draw_line(panel, mark)
        case Band():
            pale = PALE if mark.position == "id" else look_of(mark.position)[0]
            alpha = 1.0 if mark.position == "id" else 0.15
            panel.fill_between(mark.x, mark.low, mark.high, color=pale, alpha=alpha, lw=0, zorder=0, label=mark.name)
        case Points():
            _draw_points(panel, mark)
        case Histogram():
            colour, _ = look_of(mark.position)
            more: dict[str, Any] = {"alpha": 0.5, "linewidth": 0} if mark.filled else {"linewidth": 1.0}
            panel.stairs(mark.heights, mark.edges, fill=mark.filled, color=colour, label=mark.name, **more)
        case Bars():
            pass  # drawn together
        case Heatmap():
            draw_heatmap(panel, figure)
        case Text():
            across, up = _SIDES[mark.side]
            panel.text(mark.x, mark.y, mark.text, ha=across, va=up, fontsize=7)


def _draw_line(panel: Axes, mark: Line) -> None:
    colour, marker = look_of(mark.position)
    if mark.position == "soft" and not mark.dotted:
        colour = "#C4C4C4"
    (line,) = panel.plot(
        mark.x,
        mark.y,
        color=colour,
        linewidth=0.8 if mark.dotted else _WEIGHTS[mark.weight],
        linestyle="--" if mark.dotted else "-",
        drawstyle="steps-post" if mark.steps else "default",
        label=mark.name if mark.listed else "_",
        solid_capstyle="round",
        zorder=2 if mark.listed else 1,
    )
    if mark.listed and mark.weight == "heavy":
        # a fine line on the same place is seen on it
        line.set(linewidth=2.6, alpha=0.55, zorder=1)
    if mark.markers:
        # a mark on the edge of the plot is drawn whole
        line.set(marker=marker or "o", markersize=3, clip_on=False)
    elif marker and mark.listed and len(mark.x) >= _FEW:
        line.set(marker=marker, markersize=3, markevery=_marked(len(mark.x), mark.position))


def _marked(count: int, position: Position) -> list[int]:
    """Places along a line: marks of different lines stand side by side, each line having its share of a fifth."""
    first = 0.2 * (1 + (position if isinstance(position, int) else 0) % 8 / 8)
    return sorted({int(share * (count - 1)) for share in np.arange(first, 1.0, 0.2)})


def _draw_points(panel: Axes, mark: Points) -> None:
    colour, marker = look_of(mark.position)
    reach = None
    if mark.low:
        reach = np.abs(np.stack([mark.low, mark.high]) - np.asarray(mark.y))
    panel.errorbar(
        np.asarray(mark.x),
        np.asarray(mark.y),
        yerr=reach,
        fmt=marker or "o",
        color=colour,
        markerfacecolor=colour if mark.filled else "white",
        markersize=3,
        elinewidth=0.5,
        label=mark.name,
        zorder=2,
    )
    if mark.written:
        for x, y, label in zip(mark.x, mark.y, mark.labels):
            panel.annotate(label, (x, y), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=6)


def _draw_bars(panel: Axes, figure: Figure) -> None:
    """All bars of a figure: those on one name stand end to end."""
    ends = dict.fromkeys(figure.y.categories, 0.0)
    for mark in figure.marks:
        if isinstance(mark, Bars):
            heights = [figure.y.categories.index(name) for name in mark.names]
            starts = [ends[name] for name in mark.names]
            colour, _ = look_of(mark.position)
            panel.barh(heights, mark.lengths, 0.72, left=starts, linewidth=0, color=colour, label=mark.name)
            ends |= {name: start + length for name, start, length in zip(mark.names, starts, mark.lengths)}


def _set_axis(panel: Axes, name: str, axis: Axis) -> None:
    own = getattr(panel, f"{name}axis")
    own.set_label_text(axis.label)
    if axis.scale == "names":
        if not panel.images:
            getattr(panel, f"set_{name}ticks")(range(len(axis.categories)), axis.categories)
            if name == "y":
                panel.set_ylim(len(axis.categories) - 0.4, -0.6)
        return
    if axis.scale == "log":
        getattr(panel, f"set_{name}scale")("log")
        own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        own.set_minor_formatter(NullFormatter())
    elif axis.percent:
        own.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    if axis.whole:
        own.set_major_locator(MaxNLocator(integer=True))
    if axis.ticks:
        getattr(panel, f"set_{name}ticks")(*map(list, zip(*axis.ticks)))
    if axis.range is not None:
        getattr(panel, f"set_{name}lim")(*axis.range)
    elif axis.from_zero:
        getattr(panel, f"set_{name}lim")(**{"left" if name == "x" else "bottom": 0.0})


def _wide(figure: Figure) -> bool:
    """Whether a matrix has more columns, or longer names beside it, than fit in a column of a paper."""
    heats = [mark for mark in figure.marks if isinstance(mark, Heatmap)]
    return any(0.28 * len(mark.columns) + 0.07 * max(map(len, mark.rows)) > COLUMN - 0.2 for mark in heats)


def _height(figure: Figure) -> float:
    """Inches."""
    for mark in figure.marks:
        if isinstance(mark, Heatmap):
            return max(2.0, 0.9 + 0.2 * len(mark.rows))
        if isinstance(mark, Bars):
            return 0.9 + 0.19 * len(figure.y.categories)
    return 3.2 if figure.shape in ("square", "equal") else 2.6


def _readable(image: AxesImage, value: float) -> str:
    """Black or white, whichever contrasts more with the colour of a value (relative luminance)."""
    red, green, blue, _ = image.cmap(image.norm(np.asarray(value)))
    return "black" if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > _READABLE else "white"
