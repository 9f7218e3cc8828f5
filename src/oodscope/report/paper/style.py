"""How figures for papers look: sizes of columns, fonts, colours and marks that survive print and colour blindness."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from oodscope.base.errors import UsageError
from oodscope.base.files import atomic_path
from oodscope.report.paper.look import named

FORMATS = ("png", "pdf", "svg")

COLUMN, PAGE = 3.4, 7.0
"""Widths in inches: one column of a two-column paper, and the whole of a page's text."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Seven colours that colour-blind readers can distinguish (Okabe and Ito 2008)."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY, PALE = "#8A8A8A", "#E3E3E3"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.5,
    # the name of a set or a detector may hold dollars, and is written as it is
    "text.parse_math": False,
    # letters stay letters in a PDF (TrueType, which publishers ask for), and equal figures are equal files
    "pdf.fonttype": 42,
    "svg.hashsalt": "oodscope",
}

_UNDATED: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


def house_style(font: str = "") -> AbstractContextManager[None]:
    """While it lasts, figures look as here whatever the reader's own settings are.

    Parameters
    ----------
    font : a family in place of the house's, which still has the letters that it lacks.
    """
    own = {"font.family": [font, "DejaVu Sans"]} if font else {}
    return style.context(["default", {**STYLE, **own}])


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure as ``stem.png``, ``stem.pdf`` and ``stem.svg``, each whole or not at all."""
    return [write_figure(figure, stem.with_name(f"{stem.name}.{kind}")) for kind in formats]


def write_figure(figure: Figure, path: Path, font: str = "") -> Path:
    """Write a figure to one file, in the format of its ending."""
    kind = check_format(path)
    with atomic_path(path) as temporary, house_style(font):
        figure.savefig(temporary, format=kind, dpi=300, metadata=_UNDATED.get(kind))
    return path


def check_format(path: Path) -> str:
    """The format that a file's ending says; any other is refused, before there is work to lose."""
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        raise UsageError(f"{path}: figures are written as {', '.join(FORMATS)}; end the name in one of them")
    return kind


def same_scale(panels: Sequence[Axes], y: bool = True) -> None:
    """One scale for all panels, so that they can be compared by eye."""
    for axis in ("x", "y") if y else ("x",):
        ends = np.array([getattr(panel.dataLim, f"interval{axis}") for panel in panels])
        low, high = ends[:, 0].min(), ends[:, 1].max()
        margin = 0.06 * (high - low) or 1.0
        for panel in panels:
            getattr(panel, f"set_{axis}lim")(low - margin, high + margin)


def plain_axes(panel: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """A pale grid behind the marks, and no box around them."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis=grid)
    panel.set_axisbelow(True)


def style_of(index: int) -> tuple[str, str]:
    """Colour and marker of the index-th line; after seven the same colours with other markers."""
    return COLOURS[index % len(COLOURS)], MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def legend_above(figure: Figure, panel: Axes, most: int) -> None:
    """One legend for all panels, above them, where it covers no data; in fewer columns where names are long."""
    handles, labels = panel.get_legend_handles_labels()
    labels = [named(label) for label in labels]
    for columns in range(min(most, len(labels)), 0, -1):
        legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        if columns == 1 or legend.get_window_extent(renderer_of(figure)).width <= figure.bbox.width:
            return
        legend.remove()


def renderer_of(figure: Figure) -> Any:
    """What measures the words of a figure that has not been written yet."""
    canvas: Any = FigureCanvasAgg(figure)
    return canvas.get_renderer()
