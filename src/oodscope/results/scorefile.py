"""A table of numbers as one Parquet file: small on disk, exact to the last bit, its metadata inside."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path
from oodscope.base.hashing import canonical_json

if TYPE_CHECKING:
    import pandas as pd

SCORES = "score table"


def write(path: Path, frame: "pd.DataFrame", metadata: Mapping[str, Any], kind: str = SCORES) -> None:
    """Write ``frame`` and its metadata atomically; ``kind`` is what the file is, and ``read`` asks for it."""
    import pyarrow as pa  # late: nobody should wait for it who only imports this
    import pyarrow.parquet as pq

    try:
        text = canonical_json(metadata)
    except (TypeError, ValueError) as error:
        raise DataError(f"the metadata of a {kind} must be plain JSON values: {error}") from error
    columns = {str(name): pa.array(frame[name]) for name in frame.columns}
    scores = [name for name, column in columns.items() if pa.types.is_floating(column.type)]
    table = pa.table(columns).replace_schema_metadata({_key(kind): text.encode()})
    with atomic_path(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            use_dictionary=[name for name in columns if name not in scores],
            # the bytes of one significance lie side by side: scores shrink by a quarter, and stay exact
            use_byte_stream_split=scores,
        )


def read(path: Path, kind: str = SCORES) -> "tuple[pd.DataFrame, dict[str, Any]]":
    """The frame and the metadata of a file that ``write`` wrote as this kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # not read_table, which would take a folder called "seed=0" for a column
        with pq.ParquetFile(path) as file:
            table = file.read()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a damaged name
        raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from error
    if _key(kind) not in (table.schema.metadata or {}):
        raise DataError(f"{path}: a Parquet file, but not a {kind}: it carries no descriptions of one")
    try:
        return table.to_pandas(), json.loads(table.schema.metadata[_key(kind)])
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: damaged: the descriptions of its columns are not JSON ({error})") from error


def _key(kind: str) -> bytes:
    return b"oodscope.scores" if kind == SCORES else f"oodscope.{kind}".encode()
