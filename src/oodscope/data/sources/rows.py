"""Images in the rows of a Hugging Face dataset."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.sources.decoding import UnreadableImageError
from oodscope.data.sources.encoded import EncodedSource


class RowSource(EncodedSource):
    """Encoded images of one column, decoded when they are read.

    Parameters
    ----------
    label : name of the set.
    table : a ``datasets.Dataset``.
    column : its image column.
    """

    def __init__(self, label: str, table: Any, column: str) -> None:
        from datasets import Image

        self.label = label
        self.column = column
        # the library would decode as it likes; asked for bytes, it hands them over
        self.table = table.select_columns([column]).cast_column(column, Image(decode=False))
        self._state = _state(table, column)

    def __len__(self) -> int:
        return len(self.table)

    def encoded(self, index: int) -> Path | BinaryIO:
        cell = self.table[index][self.column]
        if cell and cell.get("bytes"):
            return io.BytesIO(cell["bytes"])
        if cell and cell.get("path"):
            return Path(cell["path"])
        raise UnreadableImageError(f"unreadable image {self.where(index)}: the row holds no image")

    def where(self, index: int) -> str:
        return f"row {index} of set {self.label!r}"

    def name(self, index: int) -> str:
        return f"{self.label}/{index}"

    def keeping(self, rows: Sequence[int]) -> "RowSource":
        return RowSource(self.label, self.table.select(rows), self.column)

    def _digest_all(self) -> list[bytes]:
        kept = None if self._state is None else cache_root() / "rows" / f"{self._state[:32]}.npy"
        if kept is not None:
            try:
                known = np.load(kept, allow_pickle=False)
                if known.shape == (len(self), 16) and known.dtype == np.uint8:
                    return [row.tobytes() for row in known]
            except (OSError, ValueError, EOFError):
                pass  # absent or broken: reading the rows again is the repair
        digests = [self._digest(index) for index in range(len(self))]
        if kept is not None:
            with atomic_path(kept) as temporary, temporary.open("wb") as stream:
                np.save(stream, np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16))
        return digests

    def _digest(self, index: int) -> bytes:
        try:
            file = self.encoded(index)
            content = file.read_bytes() if isinstance(file, Path) else file.read()
        except (UnreadableImageError, OSError):
            content = b""  # whoever decodes it will say what is wrong with it
        return hashlib.blake2b(content, digest_size=16).digest()


def _state(table: Any, column: str) -> str | None:
    """What the digests depend on, without reading the rows; ``None`` if the table lies in memory."""
    files = [Path(entry["filename"]) for entry in table.cache_files]
    if not files:
        return None
    states = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    return fingerprint([table._fingerprint, len(table), column, states])
