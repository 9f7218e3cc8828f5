"""Measurements: many tidy rows, to filter, add up and hand over as a data frame."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, overload

import numpy as np
import pandas as pd

from oodscope.base.errors import DataError
from oodscope.base.hashing import canonical_json
from oodscope.results.measurement import COLUMNS, COUNTS, FLOATS, LATER, Measurement, check_fields


class Measurements(Sequence[Measurement]):
    """Measurements in order, never changed in place: ``+`` and ``filter`` give new ones."""

    def __init__(self, rows: Iterable[Measurement] = ()) -> None:
        self._rows = tuple(rows)

    @classmethod
    def from_rows(cls, rows: Iterable[Measurement | Mapping[str, Any]]) -> "Measurements":
        """From measurements, or from mappings with the fields of one."""
        return cls(row if isinstance(row, Measurement) else Measurement(**row) for row in rows)

    @classmethod
    def from_dataframe(cls, frame: pd.DataFrame) -> "Measurements":
        """The inverse of ``to_dataframe``; a frame of an older version lacks what was not measured then."""
        lacking = [name for name in LATER if name not in frame.columns]
        if lacking and set(frame.columns) | set(lacking) == set(COLUMNS):
            frame = frame.assign(**dict.fromkeys(lacking))[list(COLUMNS)]
        if list(frame.columns) != list(COLUMNS):
            odd = sorted(set(COLUMNS) ^ set(map(str, frame.columns))) or "in a wrong order"
            raise DataError(f"not a table of measurements: missing or unknown columns {odd}")
        columns = {name: _plain(frame[name]) for name in COLUMNS}
        columns["params"] = [json.loads(params) for params in columns["params"]]
        return cls(Measurement(**dict(zip(COLUMNS, row))) for row in zip(*columns.values()))

    def to_dataframe(self) -> pd.DataFrame:
        """One row each, one column per field; ``params`` as JSON text, so that one can group by it."""
        columns: dict[str, Any] = {name: [getattr(row, name) for row in self._rows] for name in COLUMNS}
        columns["params"] = [canonical_json(params) for params in columns["params"]]
        # typed one by one: a column of integers with a gap would pass through float64 and lose digits
        columns |= {name: pd.array(columns[name], dtype="Int64") for name in COUNTS}
        columns |= {name: np.array(columns[name], dtype=np.float64) for name in FLOATS}
        return pd.DataFrame(columns)

    def filter(self, **equals: Any) -> "Measurements":
        """Those whose fields equal all the given values: ``filter(metric="auroc", group="near")``."""
        check_fields(equals)
        rows: Sequence[Measurement] = self._rows
        for name, value in equals.items():
            field = attrgetter(name)
            rows = [row for row in rows if field(row) == value]
        return Measurements(rows)

    def distinct(self, name: str) -> list[Any]:
        """The values of one field, in order of appearance."""
        check_fields([name])
        return list(dict.fromkeys(getattr(row, name) for row in self._rows))

    def __add__(self, other: "Measurements") -> "Measurements":
        return Measurements((*self._rows, *other))

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> "Measurements": ...
    def __getitem__(self, index: int | slice) -> "Measurement | Measurements":
        return Measurements(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measurements) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        return f"Measurements({len(self)} rows)"


def _plain(column: "pd.Series[Any]") -> list[Any]:
    """Python's own values, ``None`` for a gap."""
    values: list[Any] = column.tolist()
    return [None if gap else value for gap, value in zip(column.isna(), values)] if column.hasnans else values
