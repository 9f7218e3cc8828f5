"""Digests of the files of a set: from its manifest, from the table of known files, or from their bytes.

A set's **manifest** is one Parquet file in the cache, named by a hash of the set's root and paths: path, size,
modification time and digest of every file, in order. Opening a set whose files are as they were costs one look at each
file's status and no look into any.
"""

import hashlib
import math
import os
import stat
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.images.filehashes import FileHashes, encoded_names
from oodscope.execution.lookahead import threads
from oodscope.execution.workers import session_workers

MISSING = -1
"""The size of what is not a file."""

DIGEST = 16
"""Bytes of a digest."""

BATCH = 1000
"""Files hashed at once."""

PATIENCE = 1.0
"""Seconds between two notes in the table: what a kill can cost. Each note waits for the disk."""

MANY = 20_000
"""Files from which on it pays to start processes that hash them."""

SLOW = 50e-6
"""Seconds for one file's status from which on several threads ask for those of the others."""


@dataclass(frozen=True)
class Statuses:
    """Sizes and modification times of files, in order; ``MISSING`` where there is no file."""

    sizes: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def read(cls, root: Path, paths: Sequence[str]) -> "Statuses":
        """One question to the system per file, asked from inside the root: its path is looked up once.

        Where the system answers slowly (a file system behind a network), several threads ask, which wait for it and not
        for each other. Where it answers at once they would only wait for Python.
        """
        try:
            folder = os.open(root, os.O_RDONLY)
        except OSError:
            return cls(*np.full((2, len(paths)), MISSING, dtype=np.int64))
        try:
            started = monotonic()
            first = _statuses(folder, paths[:BATCH])
            slow = monotonic() - started > SLOW * BATCH
            parts = [first, *_shared_out(folder, paths[BATCH:], threads() if slow else 1)]
        finally:
            os.close(folder)
        return cls(*np.concatenate(parts, axis=1))

    def missing(self) -> list[int]:
        """The rows of which no file is there."""
        return np.flatnonzero(self.sizes == MISSING).tolist()


def _shared_out(folder: int, paths: Sequence[str], askers: int) -> list[NDArray[np.int64]]:
    if askers == 1:
        return [_statuses(folder, paths)]
    share = max(1, -(-len(paths) // askers))
    with ThreadPoolExecutor(askers) as pool:
        shares = [paths[start : start + share] for start in range(0, len(paths), share)]
        return list(pool.map(lambda piece: _statuses(folder, piece), shares))


def _statuses(folder: int, paths: Sequence[str]) -> NDArray[np.int64]:
    # flat arrays: a million tuples would be walked by the garbage collector again and again
    sizes, times = array("q"), array("q")
    for path in paths:
        try:
            status = os.stat(path, dir_fd=folder)
        except OSError:
            status = None
        if status is not None and stat.S_ISREG(status.st_mode):
            sizes.append(status.st_size)
            times.append(status.st_mtime_ns)
        else:
            sizes.append(MISSING)
            times.append(MISSING)
    return np.array([sizes, times], dtype=np.int64)


def file_digests(root: Path, paths: Sequence[str], statuses: Statuses) -> list[bytes]:
    """The BLAKE2b digest of every file, all of which are there."""
    digests = _known(_manifest(root, paths), statuses)
    unknown = np.flatnonzero((digests == 0).all(axis=1))
    if len(unknown):
        _fill(root, paths, statuses, digests, unknown)
        write_manifest(root, paths, statuses, digests)
    whole = digests.tobytes()
    return [whole[start : start + DIGEST] for start in range(0, len(whole), DIGEST)]


def hash_files(memory: object, root: str, paths: Sequence[str]) -> list[bytes]:
    """The digests of some files; a process may be asked, which has no use for its memory here."""
    return [hash_file(os.path.join(root, path)) for path in paths]  # noqa: PTH118  # a million times


def hash_file(path: str) -> bytes:
    """The BLAKE2b digest of a file's bytes."""
    try:
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123
            size = os.fstat(stream.fileno()).st_size
            if size < 2**24:
                return hashlib.blake2b(stream.read(), digest_size=DIGEST).digest()
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=DIGEST)).digest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _manifest(root: Path, paths: Sequence[str]) -> Path:
    name = fingerprint("manifest", os.path.realpath(root), os.fsencode("\0".join(paths)))[:40]
    return cache_root() / "manifests" / f"{name}.parquet"


def _known(kept: Path, statuses: Statuses) -> NDArray[np.uint8]:
    """Digests of files that have not changed since the manifest was written; zeros for the others."""
    digests = np.zeros((len(statuses.sizes), DIGEST), dtype=np.uint8)
    try:
        import pyarrow.parquet as pq

        table = pq.read_table(kept, columns=["size", "time", "digest"], page_checksum_verification=True)
        sizes, times = (table[name].to_numpy() for name in ("size", "time"))
        column = table["digest"].combine_chunks()
        stored = np.frombuffer(column.buffers()[1], dtype=np.uint8)[column.offset * DIGEST :][: len(column) * DIGEST]
        same = (sizes == statuses.sizes) & (times == statuses.times)
        digests[same] = stored.reshape(-1, DIGEST)[same]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, NotImplementedError):
        # not there, or not readable: the files themselves are
        digests[:] = 0
    return digests


def write_manifest(root: Path, paths: Sequence[str], statuses: Statuses, digests: NDArray[np.uint8]) -> None:
    """Keep what is known of the files of a set, for the next who opens it."""
    _keep(_manifest(root, paths), paths, statuses, digests)


def _keep(kept: Path, paths: Sequence[str], statuses: Statuses, digests: NDArray[np.uint8]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "path": pa.array(encoded_names(paths), pa.binary()),
        "size": statuses.sizes,
        "time": statuses.times,
        "digest": pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(DIGEST), len(digests), [None, pa.py_buffer(digests.tobytes())]
        ),
    }
    try:
        with atomic_path(kept) as temporary:
            pq.write_table(pa.table(columns), temporary, write_page_checksum=True, compression="zstd")
    except (StorageError, OSError):
        # a cache that cannot be written costs the next run some hashing, and this one nothing
        return


def _fill(
    root: Path, paths: Sequence[str], statuses: Statuses, digests: NDArray[np.uint8], unknown: NDArray[np.int64]
) -> None:
    """Look the unknown files up folder by folder, and hash those that the table does not know either."""
    fresh: list[int] = []
    with FileHashes() as hashes:
        for folder, rows in _by_folder(paths, unknown.tolist()).items():
            known = hashes.known(str(root / folder))
            if not known:
                fresh.extend(rows)
                continue
            for row in rows:
                size, time, digest = known.get(paths[row].rpartition("/")[2], (MISSING, MISSING, b""))
                if (size, time) == (statuses.sizes[row], statuses.times[row]):
                    digests[row] = np.frombuffer(digest, dtype=np.uint8)
                else:
                    fresh.append(row)
        _hash(root, paths, statuses, digests, fresh, hashes)


def _by_folder(paths: Sequence[str], rows: Sequence[int]) -> dict[str, list[int]]:
    folders: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        folders[paths[row].rpartition("/")[0]].append(row)
    return folders


def _hash(
    root: Path,
    paths: Sequence[str],
    statuses: Statuses,
    digests: NDArray[np.uint8],
    rows: Sequence[int],
    hashes: FileHashes,
) -> None:
    """Hash files, here until the processes of the session are there, if they are worth it; note them now and then."""
    workers = session_workers(start=len(rows) >= MANY)
    pieces = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    place, begun = str(root), deque[tuple[Sequence[int], Callable[[], list[bytes]]]]()
    hashed: list[int] = []
    since = monotonic()
    try:
        for piece in pieces:
            names = [paths[row] for row in piece]
            if workers is not None and workers.ready:
                begun.append((piece, workers.submit(hash_files, place, names).result))
                continue
            _take(piece, hash_files(None, place, names), digests, hashed)
            since = _noted(hashed, since, root, paths, statuses, digests, hashes)
        while begun:
            piece, result = begun.popleft()
            _take(piece, result(), digests, hashed)
            since = _noted(hashed, since, root, paths, statuses, digests, hashes)
    finally:
        # an unreadable file must not cost what was hashed before it
        _noted(hashed, -math.inf, root, paths, statuses, digests, hashes)


def _take(rows: Sequence[int], found: Sequence[bytes], digests: NDArray[np.uint8], hashed: list[int]) -> None:
    digests[rows] = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, DIGEST)
    hashed.extend(rows)


def _noted(
    hashed: list[int],
    since: float,
    root: Path,
    paths: Sequence[str],
    statuses: Statuses,
    digests: NDArray[np.uint8],
    hashes: FileHashes,
) -> float:
    """Note in the table what was hashed since, if that is long ago; when it was last noted."""
    if monotonic() - since < PATIENCE or not hashed:
        return since
    for folder, rows in _by_folder(paths, hashed).items():
        names = [paths[row].rpartition("/")[2] for row in rows]
        found = digests[rows].tobytes()
        each = [found[start : start + DIGEST] for start in range(0, len(found), DIGEST)]
        # as lists: one number of an array at a time costs more than the table
        hashes.note(str(root / folder), zip(names, statuses.sizes[rows].tolist(), statuses.times[rows].tolist(), each))
    hashed.clear()
    return monotonic()
