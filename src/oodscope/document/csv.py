"""A table as CSV, for a spreadsheet and for programs: values in full precision, no notes."""

import csv as csv_module
from collections.abc import Iterable, Sequence
from io import StringIO

from oodscope.document.number import Number
from oodscope.document.table import Cell, Entry, Table

_ENDS = {"": "value", " low": "low", " high": "high", " sd": "sd", " se": "standard_error"}
"""What follows the key of a column, and the attribute of a number that stands there."""


def csv(table: Table) -> str:
    """One line per row. A column of numbers is three: the value as a fraction or count, ``low`` and ``high``.

    Where some value is a mean over runs a fourth holds the standard deviation (``sd``), where its standard error is
    known another holds that (``se``).
    """
    ends = [_ends([row.cells[place] for row in table.rows]) for place in range(len(table.columns))]
    heads = [label.key for label in table.labels] + [table.section] * bool(table.section) + list(table.facts)
    lines: list[list[object]] = [
        [*heads, *(f"{column.key}{end}" for column, own in zip(table.columns, ends) for end in own)]
    ]
    for row in table.rows:
        labels = [entry.content for entry in row.labels] + [row.section] * bool(table.section)
        values = (value for cell, own in zip(row.cells, ends) for value in _values(cell, own))
        lines.append([*labels, *table.facts.values(), *values])
    return "".join(map(_line, lines))


def _ends(cells: Sequence[Cell]) -> list[str]:
    numbers = [cell for cell in cells if isinstance(cell, Number)]
    if not numbers:
        return [""]
    spreads = [end for end in (" sd", " se") if any(getattr(each, _ENDS[end]) is not None for each in numbers)]
    return ["", " low", " high", *spreads]


def _values(cell: Cell, ends: Sequence[str]) -> Iterable[object]:
    if isinstance(cell, Entry):
        return [cell.content, *[None] * (len(ends) - 1)]
    return [None if cell is None else getattr(cell, _ENDS[end]) for end in ends]


def _line(values: Sequence[object]) -> str:
    # with both characters of the line's end declared, either of them inside a name is quoted
    stream = StringIO()
    csv_module.writer(stream, lineterminator="\r\n").writerow(values)
    return stream.getvalue().removesuffix("\r\n") + "\n"
