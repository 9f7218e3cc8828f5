"""A table in a terminal, as wide as the terminal allows."""

import re
from collections.abc import Iterator, Sequence
from io import StringIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement as Width
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from oodscope.document.number import Number
from oodscope.document.table import Cell, Table

_BESIDE, _BELOW, _NOWHERE = " ", "\n", None
"""Where the interval of a value stands, as the text between the two."""

_NUMBER, _WORD = len("100.00†"), 12
"""The least width of a column; and the longest word of its head that is kept whole where room is scarce."""

_GAP = 2
"""Between two columns."""


def draw(table: Table, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
    """Intervals beside the values if there is room, else below them, else left out."""
    yield Text(_line(table.title), style="bold")
    every = range(len(table.columns))
    notes = list(table.notes)
    intervals = any(number is not None and number.interval for row in table.rows for number in row.numbers)
    for joint in (_BESIDE, _BELOW) if intervals else (_NOWHERE,):
        whole = _table(table, every, joint)
        if Width.get(console, options.update(width=10_000), whole).maximum <= options.max_width:
            yield whole
            break
    else:
        if intervals:
            notes.append("Too narrow here for the intervals; widen the window to see them.")
        # several tables below each other: cropping would drop columns without a word
        yield from (_table(table, part, _NOWHERE, narrow=True) for part in _fitting(table, options.max_width))
    if table.accuracy:
        yield Padding(_accuracy(table), (0, 0, 1, 1))
    yield from (Padding(Text(_line(note), style="dim"), (0, 0, 0, 1)) for note in notes)


def as_text(table: Table) -> str:
    """The same without colours, as wide as it needs to be: for a pipe or a file."""
    stream = StringIO()
    console = Console(file=stream, width=200, color_system=None, legacy_windows=False)
    console.print(*draw(table, console, console.options), sep="\n")
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table(table: Table, places: Sequence[int], joint: str | None, *, narrow: bool = False) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    heads, *rows = _labels(table)
    for head in heads:
        # a name may be broken over lines where room is scarce, a number may not
        drawn.add_column(Text("\n" * table.grouped + head), overflow="fold", no_wrap=not narrow)
    group = None
    for place in places:
        column = table.columns[place]
        above = Text(_line(column.group) if column.group != group else "", style="dim").append("\n")
        title = Text.assemble(above if table.grouped else "", _line(column.name))
        drawn.add_column(title, justify="right", overflow="fold", width=_width(table, place) if narrow else None)
        group = column.group
    lines = iter(rows)
    for _, part in table.parts():
        for row in part:
            drawn.add_row(*map(Text, next(lines)), *(_cell(row.cells[place], joint) for place in places))
        drawn.add_section()
    return drawn


def _labels(table: Table) -> list[list[str]]:
    """What stands left of the numbers, the heads first: labels, the section where there are several, the rank."""
    several = len(table.parts()) > 1
    lines = [[label.name for label in table.labels] + [table.section] * several + ["rank"] * table.ranked]
    for _, rows in table.parts():
        for row in rows:
            labels = [entry.text for entry in row.labels]
            lines.append(labels + [row.section] * several + [row.places] * table.ranked)
    return [[_line(text) for text in line] for line in lines]


def _fitting(table: Table, width: int) -> Iterator[list[int]]:
    """The columns in parts that fit beside the labels, which may take half of the width."""
    beside = sum(max(map(cell_len, texts)) + _GAP for texts in zip(*_labels(table)))
    left = width - min(beside, width // 2)
    part: list[int] = []
    used = 0
    for place in range(len(table.columns)):
        own = _width(table, place) + _GAP
        if part and used + own > left:
            yield part
            part, used = [], 0
        part.append(place)
        used += own
    yield part


def _width(table: Table, place: int) -> int:
    column = table.columns[place]
    words = [min(_WORD, cell_len(word)) for word in _line(f"{column.group} {column.name}").split()]
    return max([_NUMBER, *words, *(cell_len(_cell(row.cells[place], _NOWHERE).plain) for row in table.rows)])


def _cell(cell: Cell, joint: str | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    if not isinstance(cell, Number):
        return Text(_line(cell.text), style="bold" if cell.strong else "")
    text = Text(cell.text, style="bold" if cell.best else "")
    if joint is not _NOWHERE and cell.interval:
        text.append(joint + cell.interval, style="not bold dim")
    return text


def _accuracy(table: Table) -> Text:
    text = Text("Accuracy in percent: ")
    for index, (name, number) in enumerate(table.accuracy):
        text.append(f"{', ' if index else ''}{_line(name)} ")
        text.append(_cell(number, _BESIDE))
    return text


def _line(text: str) -> str:
    """A text in one line, without the characters that a terminal would obey."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", " ".join(text.split()))
