"""Files that are either whole or not there: atomic writes, checksums, names that may be paths, the cache's place."""

import errno
import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from oodscope.base.errors import DataError, StorageError, UsageError
from oodscope.base.hashing import fingerprint

_MOST_NAME = 200
"""Bytes of a name; file systems allow 255, and we add endings to it."""


def cache_root() -> Path:
    """Where extracted activations, rendered images and file hashes live.

    ``OODSCOPE_CACHE`` if set, otherwise ``$XDG_CACHE_HOME/oodscope``, otherwise ``~/.cache/oodscope``.
    """
    if explicit := os.environ.get("OODSCOPE_CACHE"):
        if "://" in explicit:
            url = explicit.rstrip("/")
            raise UsageError(
                f"OODSCOPE_CACHE={explicit}: the cache is a folder; what machines share may lie in an object store: "
                f"OODSCOPE_ACTIVATIONS={url}/activations and OODSCOPE_PIXELS={url}/pixels"
            )
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
    with _beside(Path(target)) as (handle, temporary):
        os.close(handle)
        yield temporary
        # the library that wrote it has closed it; on Windows only a handle that may write can be flushed
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())


@contextmanager
def atomic_file(target: Path | str) -> Iterator[IO[bytes]]:
    """The same as an open file, flushed through the handle that wrote it: errors of writing are reported there."""
    with _beside(Path(target)) as (handle, _), os.fdopen(handle, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def write_text(target: Path | str, text: str) -> None:
    """Write ``text`` to ``target`` atomically, as UTF-8."""
    with atomic_file(target) as stream:
        stream.write(text.encode("utf-8"))


def content_of(path: Path) -> bytes:
    """The bytes of a file whose path others may have chosen: a pipe would be waited for, a device never ends."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "not a file", str(path))
    return path.read_bytes()


def _reserved(name: str) -> bool:
    """Whether Windows keeps a name for a device, or cannot store it: files are copied from one system to another."""
    device = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name, re.IGNORECASE)
    return device is not None or name[-1:] in (" ", ".") or any(char in '<>"|?*' for char in name)


def plain_name(name: str, what: str) -> str:
    """A name that is also a file or folder: no separator, nothing hidden, no control characters, not too long.

    Parameters
    ----------
    what : what messages call it, such as ``the benchmark's name``.
    """
    if name in ("", ".", "..") or name[0] == "." or any(char in "/\\:" for char in name) or not name.isprintable():
        raise DataError(f"{what} {name!r} cannot be a file name: leave out separators, colons and a leading dot")
    if _reserved(name):
        raise DataError(f"{what} {name!r} cannot be a file name on Windows; choose another")
    if len(name.encode("utf-8", "surrogateescape")) > _MOST_NAME:
        raise DataError(f"{what} {name[:40]!r}... is longer than {_MOST_NAME} bytes")
    return name


NETWORK = {"nfs", "nfs4", "lustre", "ceph", "cifs", "smb3", "smbfs", "afs", "beegfs", "gpfs", "glusterfs", "9p"}
NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "fuse.ceph"}
"""File systems that other machines share, where the locks of SQLite do not hold."""


def network_file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """The kind of the network file system that a path lies on; ``None`` for a disk, or where it cannot be known.

    Parameters
    ----------
    mounts : the kernel's list of what is mounted where; Linux has one.
    """
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    there = path.absolute()
    # of mounts one above the other the longest path holds, and of equal ones the last
    found = ("", "")
    for _, point, kind, *_ in (line for line in lines if len(line) > 2):
        place = point.replace("\\040", " ")
        if there.is_relative_to(place) and len(place) >= len(found[0]):
            found = (place, kind)
    return found[1] if found[1] in NETWORK else None


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; no for a text that is too long, or otherwise no path at all."""
    try:
        return path.is_dir()
    except OSError:
        return False


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal, read piece by piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksum(data: bytes | memoryview) -> int:
    """CRC-32 of a block: enough to notice a torn or rotten block, at memory speed."""
    return zlib.crc32(data)


@contextmanager
def _beside(target: Path) -> Iterator[tuple[int, Path]]:
    """An open temporary file beside ``target``, which it replaces if the block ends well."""
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        temporary = Path(name)
        try:
            yield handle, temporary
            # mkstemp makes the file private; what we write is as readable as any other file of the user
            temporary.chmod(0o666 & ~_UMASK)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _read_umask()
"""Read once, when the module is imported: reading sets it for a moment, and a file that another thread makes in that
moment would be writable by everybody."""


def slug(name: str) -> str:
    """A name as the name of a folder: readable, and distinct from others that read alike, in upper case or lower."""
    plain = re.sub(r"[^A-Za-z0-9_+.-]+", "-", name).strip("-.")
    return plain if plain == name.lower() and not _reserved(plain) else f"{plain}-{fingerprint(name)[:8]}"
