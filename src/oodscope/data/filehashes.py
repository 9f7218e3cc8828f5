"""Content hashes of files, remembered by path, size and time of change."""

import hashlib
import sqlite3
from pathlib import Path
from types import TracebackType

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import cache_root, storage_errors


class FileHashes:
    """A small table in the cache, so that a million images are hashed once, not at every run.

    A file whose size or modification time changed is hashed anew. Use as a context manager: new hashes
    are committed when the block ends.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_root() / "filehashes.sqlite"

    def __enter__(self) -> "FileHashes":
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._table = sqlite3.connect(self.path, timeout=60)
            self._table.execute(
                "CREATE TABLE IF NOT EXISTS hashes (path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, digest BLOB)"
            )
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}; it is only a cache, delete it") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._table.commit()
        self._table.close()

    def digest(self, path: Path) -> bytes:
        """The BLAKE2b digest of the file's bytes."""
        try:
            status = path.stat()
            known = self._table.execute(
                "SELECT digest FROM hashes WHERE path = ? AND size = ? AND mtime = ?",
                (str(path.resolve()), status.st_size, status.st_mtime_ns),
            ).fetchone()
            if known:
                return bytes(known[0])
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).digest()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        self._table.execute(
            "INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, ?)",
            (str(path.resolve()), status.st_size, status.st_mtime_ns, digest),
        )
        return digest
