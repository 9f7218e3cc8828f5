"""A grid in a terminal, as wide as the terminal allows."""

from collections.abc import Iterator, Sequence
from io import StringIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement as Width
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from oodscope.document.grid import Cell, Grid
from oodscope.document.wording import heading
from oodscope.metrics.metric import MEAN

_BESIDE, _BELOW, _NOWHERE = " ", "\n", None
"""Where the interval of a value stands, as the text between the two."""

_NUMBER = len("100.00†  ")


def draw(grid: Grid, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
    """Intervals beside the values if there is room, else below them, else left out."""
    yield Text.assemble((heading(grid.metric), "bold"), f"  protocol {grid.protocol}")
    every = range(len(grid.columns))
    notes = list(grid.notes)
    for joint in (_BESIDE, _BELOW):
        table = _table(grid, every, joint)
        if Width.get(console, options.update(width=10_000), table).maximum <= options.max_width:
            yield table
            break
    else:
        notes.append("Too narrow here for the intervals; widen the window to see them.")
        # several tables below each other: cropping would drop columns without a word
        fitting = max(1, (options.max_width - _names_width(grid)) // _number_width(grid))
        yield from (_table(grid, every[i : i + fitting], _NOWHERE) for i in every[::fitting])
    if grid.accuracy:
        yield Padding(_accuracy(grid), (0, 0, 1, 1))
    yield from (Padding(Text(note, style="dim"), (0, 0, 0, 1)) for note in notes)


def as_text(grid: Grid) -> str:
    """The same without colours, as wide as it needs to be: for a pipe or a file."""
    stream = StringIO()
    console = Console(file=stream, width=200, color_system=None, legacy_windows=False)
    console.print(*draw(grid, console, console.options), sep="\n")
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table(grid: Grid, columns: Sequence[int], joint: str | None) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in _names(grid, "detector", "tuning", "rank"):
        table.add_column(Text(f"\n{name}"), no_wrap=True)
    group = None
    for column in (grid.columns[index] for index in columns):
        header = Text.assemble((column.group if column.group != group else "", "dim"), "\n")
        header.append(MEAN if column.set == MEAN else column.set)
        width = _number_width(grid) - 2 if joint is _NOWHERE else None
        table.add_column(header, justify="right", overflow="fold", width=width)
        group = column.group
    for _, rows in grid.tracks():
        for row in rows:
            cells = (_cell(row.cells[index], joint) for index in columns)
            table.add_row(*map(Text, _names(grid, row.detector, row.tuning, row.rank)), *cells)
        table.add_section()
    return table


def _names(grid: Grid, detector: str, tuning: str, rank: str) -> list[str]:
    """What stands left of the numbers: the tuning where detectors differ in it, the rank where it was tested."""
    return [detector, *([tuning] if len(grid.tracks()) > 1 else []), *([rank] if grid.ranked else [])]


def _number_width(grid: Grid) -> int:
    spread = any(cell is not None and cell.sd is not None for row in grid.rows for cell in row.cells)
    return _NUMBER + (len("±0.00") if spread else 0)


def _names_width(grid: Grid) -> int:
    rows = [("detector", "tuning", "rank"), *((row.detector, row.tuning, row.rank) for row in grid.rows)]
    columns = zip(*(_names(grid, *row) for row in rows))
    return sum(max(map(len, column)) + 2 for column in columns)


def _cell(cell: Cell | None, joint: str | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    text = Text(cell.text, style="bold" if cell.best else "")
    if joint is not _NOWHERE and cell.interval:
        text.append(joint + cell.interval, style="not bold dim")
    return text


def _accuracy(grid: Grid) -> Text:
    text = Text("Accuracy in percent: ")
    for index, (name, cell) in enumerate(grid.accuracy):
        text.append(f"{', ' if index else ''}{name} ")
        text.append(_cell(cell, _BESIDE))
    return text
