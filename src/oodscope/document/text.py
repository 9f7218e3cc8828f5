"""A table as Markdown, for a README."""

import re

from oodscope.document.number import Number
from oodscope.document.table import Cell, Table


def markdown(table: Table) -> str:
    """A GitHub-flavoured table in percent, its title above it and its notes below."""
    table = table.for_people()
    tuned = len(table.parts()) > 1
    beside = [table.section] * tuned + ["rank"] * table.ranked
    heads = [label.words for label in table.labels] + beside + [column.words for column in table.columns]
    rules = ["---"] * (len(table.labels) + len(beside)) + ["---:"] * len(table.columns)
    lines = [[*map(escaped, heads)], rules]
    for row in table.rows:
        labels = [entry.text for entry in row.labels] + [row.section] * tuned + [row.places] * table.ranked
        lines.append([*map(escaped, labels), *map(_cell, row.cells)])
    below = [escaped(note) for note in table.notes]
    if table.accuracy:
        stated = ", ".join(f"{escaped(name)} {_cell(number)}" for name, number in table.accuracy)
        below.append(f"Accuracy in percent: {stated}.")
    drawn = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([escaped(table.title), "", *drawn, "", *(f"{line}  " for line in below)]).rstrip() + "\n"


def _cell(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, Number):
        value = f"**{cell.number}**" if cell.best else cell.number
        return f"{value}{escaped(cell.marks)} {cell.brackets}".rstrip()
    text = escaped(cell.text)
    # four stars around nothing would be shown as stars
    return f"**{text}**" if cell.strong and text else text


def escaped(name: str) -> str:
    """A name that Markdown shows as it is; an underscore inside a word needs no escape."""
    text = re.sub(r"([\\|<>*`\[\]&~])", r"\\\1", " ".join(name.split()))
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)
