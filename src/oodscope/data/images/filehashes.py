"""What is known of files without reading them again: their content hash, and whether they can be decoded."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from types import TracebackType

from oodscope.base.errors import StorageError
from oodscope.base.files import cache_root, storage_errors

_ASKED = 500
"""Digests in one question; SQLite takes a bounded number of values."""

Hashed = tuple[str, int, int, bytes]
"""Name in its folder, size, modification time in nanoseconds, digest."""


class FileHashes:
    """A table in the cache, so that a million images are hashed once, not at every run.

    It is asked once per folder. A file whose size or modification time changed is not known any more. Use as a context
    manager.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_root() / "filehashes.sqlite"

    def __enter__(self) -> "FileHashes":
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._cache_errors():
            self._table = sqlite3.connect(self.path, timeout=60)
            # names are bytes: not every file name is text
            self._table.execute(
                "CREATE TABLE IF NOT EXISTS files (folder BLOB, name BLOB, size INTEGER, mtime INTEGER, digest BLOB, "
                "PRIMARY KEY (folder, name)) WITHOUT ROWID"
            )
            self._table.execute("CREATE TABLE IF NOT EXISTS decoded (digest BLOB PRIMARY KEY)")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._table.close()

    def known(self, folder: str) -> dict[str, tuple[int, int, bytes]]:
        """Size, time and digest of every file of a folder that was hashed before, by name: one question."""
        with self._cache_errors():
            rows = self._table.execute(
                "SELECT name, size, mtime, digest FROM files WHERE folder = ?", (_place(folder),)
            ).fetchall()
        return {os.fsdecode(name): (size, mtime, digest) for name, size, mtime, digest in rows}

    def note(self, folder: str, files: Iterable[Hashed]) -> None:
        """Remember the digests of some files of a folder."""
        names, sizes, times, digests = zip(*files)
        # one short transaction: a process that hashes for an hour must not lock out the others
        with self._cache_errors(), self._table:
            self._table.executemany(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)",
                zip(repeat(_place(folder)), encoded_names(names), sizes, times, digests),
            )

    def decoded(self, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests whose images are known to decode."""
        found: set[bytes] = set()
        for start in range(0, len(digests), _ASKED):
            asked = digests[start : start + _ASKED]
            marks = ",".join("?" * len(asked))
            with self._cache_errors():
                rows = self._table.execute(f"SELECT digest FROM decoded WHERE digest IN ({marks})", asked)
                found.update(digest for (digest,) in rows)
        return found

    def note_decoded(self, digests: Iterable[bytes]) -> None:
        """Remember images that were decoded without an error."""
        with self._cache_errors(), self._table:
            self._table.executemany("INSERT OR IGNORE INTO decoded VALUES (?)", ((digest,) for digest in digests))

    @contextmanager
    def _cache_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}; it is only a cache, delete it") from error


def encoded_names(names: Sequence[str]) -> list[bytes]:
    """File names as the system has them; all at once, since no name holds a zero."""
    return os.fsencode("\0".join(names)).split(b"\0") if names else []


def _place(folder: str) -> bytes:
    return os.fsencode(os.path.realpath(folder))
