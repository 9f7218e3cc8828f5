"""A grid as Markdown for a README, as CSV for a spreadsheet and as JSON for a program."""

import csv as csv_module
import io
import json as json_module
import re
from typing import Any

from oodscope.document.grid import Cell, Grid
from oodscope.document.wording import heading


def markdown(grid: Grid) -> str:
    """A GitHub-flavoured table in percent, with its notes below."""
    tuned = len(grid.tracks()) > 1
    header = [heading(grid.metric), *(["tuning"] if tuned else []), *(["rank"] if grid.ranked else [])]
    header += [escaped(column.name) for column in grid.columns]
    lines = [header, ["---", *["---"] * (tuned + grid.ranked), *["---:"] * len(grid.columns)]]
    for row in grid.rows:
        names = [escaped(row.detector), *([row.tuning] if tuned else []), *([row.rank] if grid.ranked else [])]
        lines.append([*names, *(_markdown_cell(cell) for cell in row.cells)])
    table = [f"| {' | '.join(line)} |" for line in lines]
    below = [f"Protocol: {escaped(grid.protocol)}.", *grid.notes]
    if grid.accuracy:
        stated = ", ".join(f"{escaped(name)} {_markdown_cell(cell)}" for name, cell in grid.accuracy)
        below.append(f"Accuracy in percent: {stated}.")
    return "\n".join([*table, "", *(f"{line}  " for line in below)]) + "\n"


def csv(grid: Grid) -> str:
    """One line per detector; each column as three: the value, ``low`` and ``high``, as fractions.

    Where the values are means over runs, a fourth holds their standard deviation.
    """
    stream = io.StringIO()
    writer = csv_module.writer(stream, lineterminator="\n")
    keys = [f"{column.group}/{column.set}" for column in grid.columns]
    spread = any(cell is not None and cell.sd is not None for row in grid.rows for cell in row.cells)
    ends = [f"{key}{end}" for key in keys for end in ("", " low", " high", *([" sd"] if spread else []))]
    writer.writerow(["detector", "tuning", "protocol", "metric", *ends])
    for row in grid.rows:
        numbers: list[float | None] = []
        for cell in row.cells:
            found = [None, None, None, None] if cell is None else [cell.value, cell.low, cell.high, cell.sd]
            numbers += found if spread else found[:3]
        writer.writerow([row.detector, row.tuning, grid.protocol, grid.metric, *numbers])
    return stream.getvalue()


def json(grid: Grid) -> str:
    """The whole grid: fractions in full precision, marks and notes."""
    rows = [
        {
            "detector": row.detector,
            "tuning": row.tuning,
            "cells": [
                {"group": column.group, "set": column.set} | _json_cell(cell)
                for column, cell in zip(grid.columns, row.cells)
                if cell is not None
            ],
        }
        for row in grid.rows
    ]
    accuracy = [{"set": name, "value": c.value, "low": c.low, "high": c.high} for name, c in grid.accuracy]
    content = {"protocol": grid.protocol, "metric": grid.metric, "rows": rows, "accuracy": accuracy}
    return json_module.dumps(content | {"notes": grid.notes}, indent=1, ensure_ascii=False) + "\n"


def _json_cell(cell: Cell) -> dict[str, Any]:
    marks = {"best": cell.best, "overlaps_best": cell.close}
    numbers: dict[str, Any] = {"value": cell.value, "low": cell.low, "high": cell.high}
    if cell.class_low is not None:
        numbers |= {"class_low": cell.class_low, "class_high": cell.class_high}
    if cell.rank is not None:
        numbers |= {"rank": list(cell.rank)}
    if cell.sd is not None:
        numbers |= {"sd": cell.sd}
    known = {"exposure": cell.exposure} if cell.exposure else {}
    return numbers | marks | known


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    value = f"**{cell.text}**" if cell.best else cell.text
    return f"{value} {cell.brackets}".rstrip()


def escaped(name: str) -> str:
    """A name that Markdown shows as it is; an underscore inside a word needs no escape."""
    text = re.sub(r"([\\|<>*`\[\]&~])", r"\\\1", " ".join(name.split()))
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)
