"""A column on disk that can be filled row by row, survives a kill, and notices damage."""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oodscope.base.files import checksum, storage_errors


class StoredColumn:
    """``rows`` x ``shape`` numbers in a raw file, with a journal of which rows are there.

    Data are written first and flushed, then one journal line records the rows and their checksum: a
    process killed between the two has written bytes that nobody counts. When the column is opened, each
    journal line is checked against the data; lines that do not match, or are torn, do not count, so their
    rows are simply missing and will be computed again.

    The file is sparse: rows that were never asked for take no space.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self.path = path
        self.rows = rows
        self.journal = path.with_suffix(".journal")
        self.present: NDArray[np.bool_] = np.zeros(rows, dtype=bool)
        self.dtype: np.dtype[Any] | None = None
        self.shape: tuple[int, ...] = ()
        self._replay()

    def missing(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the wanted rows that are not there yet."""
        return wanted[~self.present[wanted]]

    def write(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Store values for some rows, durably, before the journal mentions them."""
        values = np.ascontiguousarray(values)
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.dtype is None:
                self._append({"dtype": values.dtype.str, "shape": list(values.shape[1:]), "rows": self.rows})
                self.dtype, self.shape = values.dtype, values.shape[1:]
            if values.dtype != self.dtype or values.shape[1:] != self.shape:
                raise ValueError(
                    f"{self.path.name} holds {self.dtype} {self.shape}, not {values.dtype} {values.shape[1:]}"
                )
            with self.path.open("r+b" if self.path.exists() else "w+b") as stream:
                offset = 0
                for start, stop in _runs(rows):
                    stream.seek(start * self._row_bytes)
                    stream.write(values[offset : offset + stop - start].tobytes())
                    offset += stop - start
                stream.flush()
                os.fsync(stream.fileno())
            self._append({"runs": _runs(rows), "crc": checksum(values.tobytes())})
        self.present[rows] = True

    def read(self) -> NDArray[Any]:
        """A read-only memory map of all rows; those that are missing read as zeros or garbage."""
        assert self.dtype is not None, "nothing was written yet"
        if self.path.stat().st_size < self.rows * self._row_bytes:
            os.truncate(self.path, self.rows * self._row_bytes)
        return np.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.rows, *self.shape))

    @property
    def _row_bytes(self) -> int:
        assert self.dtype is not None
        return self.dtype.itemsize * int(np.prod(self.shape))

    def _append(self, entry: dict[str, Any]) -> None:
        with self.journal.open("ab") as stream:
            # a torn line of a killed writer must not swallow this one
            stream.write(b"\n" + json.dumps(entry).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _replay(self) -> None:
        if not (self.journal.exists() and self.path.exists()):
            self.journal.unlink(missing_ok=True)
            return
        with self.path.open("rb") as data:
            for line in self.journal.read_bytes().split(b"\n"):
                try:
                    entry = json.loads(line) if line else {}
                except ValueError:
                    continue
                if "dtype" in entry:
                    if entry["rows"] == self.rows:
                        self.dtype, self.shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
                elif "runs" in entry and self.dtype is not None and self._holds(data, entry):
                    for start, stop in entry["runs"]:
                        self.present[start:stop] = True

    def _holds(self, data: BinaryIO, entry: dict[str, Any]) -> bool:
        pieces = []
        for start, stop in entry["runs"]:
            data.seek(start * self._row_bytes)
            pieces.append(data.read((stop - start) * self._row_bytes))
        return checksum(b"".join(pieces)) == int(entry["crc"])


def _runs(rows: NDArray[np.int64]) -> list[list[int]]:
    """Ascending rows as half-open runs: ``[3, 4, 5, 9]`` is ``[[3, 6], [9, 10]]``."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [[int(run[0]), int(run[-1]) + 1] for run in np.split(rows, breaks)]
