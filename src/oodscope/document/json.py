"""A table as JSON, for programs: fractions in full precision, marks and notes."""

import json as json_module
from math import isfinite
from typing import Any

from oodscope.document.number import Number
from oodscope.document.table import Cell, Column, Row, Table


def json(table: Table) -> str:
    """The whole table; a cell names its column, and where nothing was measured there is none."""
    content = {
        "name": table.name,
        "title": table.title,
        **table.facts,
        "columns": [_column(column) for column in table.columns],
        "rows": [_row(table, row) for row in table.rows],
        "accuracy": [{"set": name, **_number(number)} for name, number in table.accuracy],
        "notes": table.notes,
    }
    return json_module.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _column(column: Column) -> dict[str, str]:
    return {"key": column.key, "group": column.group, "name": column.name}


def _row(table: Table, row: Row) -> dict[str, Any]:
    labels = {label.key: _plain(entry.content) for label, entry in zip(table.labels, row.labels)}
    section = {table.section: row.section} if table.section else {}
    cells = [_place(column) | _cell(cell) for column, cell in zip(table.columns, row.cells) if cell is not None]
    return {**labels, **section, "cells": cells}


def _place(column: Column) -> dict[str, str]:
    return {"column": column.key} | ({"group": column.group, "set": column.name} if column.group else {})


def _cell(cell: Cell) -> dict[str, Any]:
    if cell is None:
        return {}
    if not isinstance(cell, Number):
        return {"value": _plain(cell.content), "text": cell.text, "strong": cell.strong}
    return _number(cell) | {"best": cell.best, "overlaps_best": cell.close}


def _number(number: Number) -> dict[str, Any]:
    known: dict[str, Any] = {
        "class_low": number.class_low,
        "class_high": number.class_high,
        "rank": number.rank,
        "sd": number.sd,
        "standard_error": number.standard_error,
        "exposure": number.exposure or None,
        "doubts": number.doubts or None,
    }
    ends = {"value": number.value, "low": number.low, "high": number.high}
    content = ends | {name: value for name, value in known.items() if value is not None}
    return {name: _plain(value) for name, value in content.items()}


def _plain(value: Any) -> Any:
    """The value, and null in place of what JSON has no word for."""
    return None if isinstance(value, float) and not isfinite(value) else value
