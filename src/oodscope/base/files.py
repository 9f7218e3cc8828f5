"""Files that are either whole or not there: atomic writes, checksums, and the place of the cache."""

import errno
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oodscope.base.errors import StorageError


def cache_root() -> Path:
    """Where extracted activations, rendered images and file hashes live.

    ``OODSCOPE_CACHE`` if set, otherwise ``$XDG_CACHE_HOME/oodscope``, otherwise ``~/.cache/oodscope``.
    """
    if explicit := os.environ.get("OODSCOPE_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oodscope"


@contextmanager
def storage_errors(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one line that says which file and what to do."""
    advice = {
        errno.ENOSPC: "the disk is full; free some space or choose another folder",
        errno.EDQUOT: "the disk quota is used up; free some space or choose another folder",
        errno.EFBIG: "the file would exceed the size limit of this system",
        errno.EACCES: "permission denied; choose a folder you may write to",
        errno.EROFS: "the file system is read-only; choose another folder",
        errno.ENOTDIR: "a part of this path is a file, not a folder",
    }
    try:
        yield
    except OSError as error:
        if error.errno not in advice:
            raise
        raise StorageError(f"cannot write {target}: {advice[error.errno]}") from error


@contextmanager
def atomic_path(target: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it over ``target`` only if the block ends well.

    A reader, or a process killed at any moment, sees the old file or the new one, never a part.
    """
    target = Path(target)
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            # mkstemp makes the file private; what we write is as readable as any other file of the user
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(target: Path | str, text: str) -> None:
    """Write ``text`` to ``target`` atomically, as UTF-8."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal, read piece by piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksum(data: bytes | memoryview) -> int:
    """CRC-32 of a block: enough to notice a torn or rotten block, at memory speed."""
    return zlib.crc32(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
