"""A score table that strangers wrote: its size is known from the footer before a row is read.

A small Parquet file can stand for very much memory: pages compress by thousands, and one long string in a dictionary
can stand for every row. So rows, bytes and types are checked first, strings are read as dictionaries, and the
dictionaries are checked before they are spread out.
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oodscope.base.boundedjson import plain_size
from oodscope.base.errors import DataError
from oodscope.leaderboard.records.text import LINE, one_line
from oodscope.results.scoretable import COLUMNS, NUMBERS, TEXT

MOST_BYTES = 512 * 2**20
MOST_UNPACKED = 2**30
MOST_ROWS = 5_000_000
_FOOTER = 2**20


def read_bounded_scores(path: Path, detector: str) -> pd.DataFrame:
    """The rows of one detector. What the file says of itself is not read: the entry beside it says it."""
    size = plain_size(path)
    if size > MOST_BYTES:
        raise DataError(f"{path}: {size:,} bytes; at most {MOST_BYTES:,} are read")
    limits = {"thrift_string_size_limit": _FOOTER, "thrift_container_size_limit": _FOOTER}
    try:
        with pq.ParquetFile(path, **limits) as file:
            _check_footer(path, file, detector)
        # opened again, because only now is it sure that these columns are there and are strings
        with pq.ParquetFile(path, read_dictionary=list(TEXT), **limits) as file:
            return _spread(path, file.read(columns=[*COLUMNS, detector]))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a damaged name of a column
        raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from error


def _check_footer(path: Path, file: pq.ParquetFile, detector: str) -> None:
    footer = file.metadata
    if footer.num_rows > MOST_ROWS:
        raise DataError(f"{path}: {footer.num_rows:,} rows; at most {MOST_ROWS:,} are read")
    # of groups, not of their columns: looking at a column whose statistics are damaged ends the process, in C++
    unpacked = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
    if unpacked > MOST_UNPACKED:
        raise DataError(f"{path}: {unpacked:,} bytes once unpacked; at most {MOST_UNPACKED:,} are read")
    names = file.schema_arrow.names
    if sorted(names) != sorted({*COLUMNS, detector}):
        odd = sorted({*COLUMNS, detector} ^ set(names)) or sorted(names)
        raise DataError(f"{path}: holds the columns of one detector, {detector!r}, and nothing else; see {odd[0]!r}")
    for column in file.schema_arrow:
        if not _fits(column, detector):
            raise DataError(f"{path}: column {column.name!r} is of type {column.type}")


def _fits(column: pa.Field, detector: str) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if column.name in TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if column.name in NUMBERS:
        return bool(pa.types.is_integer(kind))
    return column.name == detector and bool(pa.types.is_float64(kind) or pa.types.is_float32(kind))


def _spread(path: Path, table: pa.Table) -> pd.DataFrame:
    columns: dict[str, object] = {}
    for name in table.column_names:
        column = table[name]
        if name in TEXT:
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            for chunk in column.chunks:
                _check_names(path, name, chunk.dictionary)
        if column.null_count:
            raise DataError(f"{path}: column {name!r} has an empty entry")
        columns[name] = column.to_pandas()
    return pd.DataFrame(columns)


def _check_names(path: Path, name: str, dictionary: pa.Array) -> None:
    longest = pa.compute.max(pa.compute.binary_length(dictionary)).as_py() or 0
    if longest > LINE:
        raise DataError(f"{path}: a {name} of {longest:,} bytes; at most {LINE} are read")
    for text in dictionary.to_pylist():
        if one_line(text) != text:
            raise DataError(f"{path}: {name} {one_line(text)!r} holds control characters or odd white space")
