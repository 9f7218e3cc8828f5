"""A grid in a terminal, as wide as the terminal allows."""

from collections.abc import Iterator
from io import StringIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement as Width
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from oodscope.results.grid import Cell, Grid
from oodscope.results.measurement import MEAN
from oodscope.results.wording import heading

_LAYOUTS = (" ", "\n", None)
"""Between a value and its interval: a space, a new line, or no interval at all."""


def draw(grid: Grid, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
    """Intervals beside the values if there is room, below them if there is less, left out if there is none."""
    for joint in _LAYOUTS:
        table = _table(grid, joint)
        if Width.get(console, options.update(width=10_000), table).maximum <= options.max_width:
            break
    yield Text.assemble((heading(grid.metric), "bold"), f"  protocol {grid.protocol}")
    yield table
    if grid.accuracy:
        yield Padding(_accuracy(grid), (0, 0, 1, 1))
    notes = [*grid.notes, *(["Too narrow here for the intervals; widen the window to see them."] * (joint is None))]
    yield from (Padding(Text(note, style="dim"), (0, 0, 0, 1)) for note in notes)


def as_text(grid: Grid) -> str:
    """The same without colours, as wide as it needs to be: for a pipe or a file."""
    console = Console(file=StringIO(), width=200, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(*draw(grid, console, console.options), sep="\n")
    stream: StringIO = console.file  # type: ignore[assignment]
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table(grid: Grid, joint: str | None) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(Text("detector"), no_wrap=True)
    for column in grid.columns:
        name = MEAN if column.set == MEAN else column.set
        table.add_column(Text.assemble((column.group, "dim"), "\n", name), justify="right", no_wrap=True)
    tracks = grid.tracks()
    for words, rows in tracks:
        if len(tracks) > 1:
            table.add_row(Text(words, style="italic"))
        for row in rows:
            table.add_row(Text(row.detector), *(_cell(cell, joint) for cell in row.cells))
        table.add_section()
    return table


def _cell(cell: Cell | None, joint: str | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    text = Text(cell.text, style="bold" if cell.best else "")
    if joint is not None and cell.interval:
        text.append(joint + cell.interval, style="not bold dim")
    return text


def _accuracy(grid: Grid) -> Text:
    text = Text("Accuracy in percent: ")
    for index, (name, cell) in enumerate(grid.accuracy):
        text.append(f"{', ' if index else ''}{name} ")
        text.append(_cell(cell, " "))
    return text
