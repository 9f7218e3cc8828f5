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

_BESIDE, _SHORT, _NOWHERE = "beside", "short", None
"""How the interval of a value stands: both ends beside it, as ``91.7 ±0.9``, or not at all."""

_WORD = 30
"""The longest word of a head that is kept whole where columns are narrow."""

_GAP = 2
"""Between two columns."""

_EXPLAINED = "±: distance to the farther end of the interval, rounded up; a wider window shows both ends."


def draw(table: Table, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
    """Both ends of each interval beside its value if they fit, else ``91.7 ±0.9``; columns that do not fit go below."""
    table = table.for_people()
    yield Text(_line(table.title), style="bold")
    every = range(len(table.columns))
    notes = list(table.notes)
    intervals = any(number is not None and number.interval for row in table.rows for number in row.numbers)
    for form in (_BESIDE, _SHORT) if intervals else (_NOWHERE,):
        whole = _table(table, every, form)
        if Width.get(console, options.update(width=10_000), whole).maximum <= options.max_width:
            yield whole
            break
    else:
        form = _SHORT if intervals else _NOWHERE
        # several tables below each other: cropping would drop columns without a word
        yield from (_table(table, part, form, narrow=True) for part in _fitting(table, options.max_width, form))
    if form == _SHORT:
        notes.append(_EXPLAINED)
    if table.accuracy:
        yield Padding(_accuracy(table), (0, 0, 1, 1))
    yield from (Padding(Text(_line(note), style="dim"), (0, 0, 0, 1)) for note in notes)


def as_text(table: Table) -> str:
    """The same without colours, as wide as it needs to be: for a pipe or a file."""
    stream = StringIO()
    console = Console(file=stream, width=200, color_system=None, legacy_windows=False)
    whole = _table(table.for_people(), range(len(table.for_people().columns)), _BESIDE)
    console.width = max(200, Width.get(console, console.options.update(width=10_000), whole).maximum)
    console.print(*draw(table, console, console.options), sep="\n")
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table(table: Table, places: Sequence[int], form: str | None, *, narrow: bool = False) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    heads, *rows = _labels(table)
    for head in heads:
        # a name may be broken over lines where columns are narrow, a number may not
        drawn.add_column(Text("\n" * table.grouped + head), overflow="fold", no_wrap=not narrow)
    group = None
    for place in places:
        column = table.columns[place]
        above = Text(_line(column.group) if column.group != group else "", style="dim").append("\n")
        title = Text.assemble(above if table.grouped else "", _line(column.name))
        drawn.add_column(title, justify="right", overflow="fold", width=_width(table, place, form) if narrow else None)
        group = column.group
    lines = iter(rows)
    for _, part in table.parts():
        for row in part:
            drawn.add_row(*map(Text, next(lines)), *(_cell(row.cells[place], form) for place in places))
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


def _fitting(table: Table, width: int, form: str | None) -> Iterator[list[int]]:
    """The columns in parts that fit beside the labels, which may take half of the width."""
    beside = sum(max(map(cell_len, texts)) + _GAP for texts in zip(*_labels(table)))
    left = width - min(beside, width // 2)
    part: list[int] = []
    used = 0
    for place in range(len(table.columns)):
        own = _width(table, place, form) + _GAP
        if part and used + own > left:
            yield part
            part, used = [], 0
        part.append(place)
        used += own
    yield part


def _width(table: Table, place: int, form: str | None) -> int:
    column = table.columns[place]
    words = [min(_WORD, cell_len(word)) for word in _line(f"{column.group} {column.name}").split()]
    return max([*words, *(cell_len(_cell(row.cells[place], form).plain) for row in table.rows)])


def _cell(cell: Cell, form: str | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    if not isinstance(cell, Number):
        return Text(_line(cell.text), style="bold" if cell.strong else "")
    text = Text(cell.short if form == _SHORT else cell.text, style="bold" if cell.best else "")
    if form == _BESIDE and cell.interval:
        text.append(f" {cell.interval}", style="not bold dim")
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
