"""What is known of files without reading them again: their content hash, and whether they can be decoded."""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import cache_root, storage_errors

_BATCH = 1000
"""Hashes written at once: what a kill can cost, and how rarely another process must wait for the table."""


class FileHashes:
    """A small table in the cache, so that a million images are hashed once, not at every run.

    A file whose size or modification time changed is hashed anew. Use as a context manager: what is still
    to be written is written when the block ends.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_root() / "filehashes.sqlite"
        self._fresh: list[tuple[bytes, int, int, bytes]] = []

    def __enter__(self) -> "FileHashes":
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._cache_errors():
            self._table = sqlite3.connect(self.path, timeout=60)
            # paths are bytes: not every file name is text
            self._table.execute(
                "CREATE TABLE IF NOT EXISTS hashes (path BLOB PRIMARY KEY, size INTEGER, mtime INTEGER, digest BLOB)"
            )
            self._table.execute("CREATE TABLE IF NOT EXISTS decoded (digest BLOB PRIMARY KEY)")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._save()
        self._table.close()

    def digest(self, path: Path) -> bytes:
        """The BLAKE2b digest of the file's bytes."""
        try:
            status = path.stat()
            place = os.fsencode(os.path.realpath(path))
            known = self._table.execute(
                "SELECT digest FROM hashes WHERE path = ? AND size = ? AND mtime = ?",
                (place, status.st_size, status.st_mtime_ns),
            ).fetchone()
            if known:
                return bytes(known[0])
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).digest()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        self._fresh.append((place, status.st_size, status.st_mtime_ns, digest))
        if len(self._fresh) >= _BATCH:
            self._save()
        return digest

    def decodes(self, digest: bytes) -> bool:
        """Whether an image with these bytes is known to decode."""
        return self._table.execute("SELECT 1 FROM decoded WHERE digest = ?", (digest,)).fetchone() is not None

    def note_decoded(self, digests: Iterable[bytes]) -> None:
        """Remember images that were decoded without an error."""
        with self._cache_errors(), self._table:
            self._table.executemany("INSERT OR IGNORE INTO decoded VALUES (?)", ((digest,) for digest in digests))

    def _save(self) -> None:
        # one short transaction: a process that hashes for an hour must not lock out the others
        with self._cache_errors(), self._table:
            self._table.executemany("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, ?)", self._fresh)
        self._fresh.clear()

    @contextmanager
    def _cache_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}; it is only a cache, delete it") from error
