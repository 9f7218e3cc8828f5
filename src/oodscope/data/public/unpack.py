"""Unpack an untrusted archive: nothing leaves the folder, nothing grows without bound."""

import errno
import gzip
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import atomic_path, storage_errors
from oodscope.execution.progress import SILENT, Progress

ARCHIVES = (".zip", ".tar", ".tgz", ".gz")
"""Endings of the names of files that are unpacked; others are taken as they are."""

_CHUNK = 1 << 20

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile, RuntimeError)
"""What the readers raise for a torn archive, or one that is encrypted or packed in a way they do not know."""

Stream = IO[bytes] | gzip.GzipFile


@dataclass(frozen=True)
class Limits:
    """What no image archive reaches and a bomb does.

    Parameters
    ----------
    entries : files in one archive; ImageNet has 1.4 million.
    ratio : unpacked bytes per packed byte, counted as they are written; images hardly shrink, and files of
        handwritten digits shrink about tenfold.
    """

    entries: int = 3_000_000
    ratio: float = 150.0


LIMITS = Limits()


def unpack(
    archive: Path, target: Path, strip: str = "", limits: Limits = LIMITS, progress: Progress = SILENT
) -> list[Path]:
    """Put the files of an archive, of the kind that its name says, under ``target``; what was written, relative to it.

    Everything is unpacked into a temporary folder first, and each file is renamed to its place only when the last one
    is whole. Refused are absolute paths, ``..``, links, devices, two entries of one name, and
    archives beyond the limits. A ``.gz`` inside the archive is unpacked too.

    Parameters
    ----------
    strip : leading folder inside the archive that is dropped from every name.
    """
    with storage_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        for stale in target.glob(".unpacking-*"):
            # of a process that was killed
            shutil.rmtree(stale)
        with tempfile.TemporaryDirectory(dir=target, prefix=".unpacking-") as temporary:
            names = _write_all(archive, Path(temporary), strip, limits, progress)
            for name in names:
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                _move(Path(temporary) / name, place)
    return [Path(name) for name in names]


def _write_all(archive: Path, folder: Path, strip: str, limits: Limits, progress: Progress) -> list[str]:
    quota = _Quota(archive, folder, limits)
    written: dict[str, None] = {}
    passed = 0
    place: str | None = None
    try:
        with archive.open("rb") as raw, progress.stage(f"unpack {archive.name}", archive.stat().st_size) as advance:
            for name, stream in _entries(archive, raw):
                place = _safe(archive, name, strip)
                if place is None:
                    continue
                if place.endswith(".gz"):
                    stream, place = gzip.GzipFile(fileobj=stream), place[:-3]
                if place in written:
                    raise DataError(f"{archive}: two entries are called {place!r}; the archive is refused")
                quota.write(stream, folder / place)
                written[place] = None
                advance(max(0, raw.tell() - passed))
                passed = max(passed, raw.tell())
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{archive}: {place!r} is both a file and a folder; the archive is refused") from error
    except _DAMAGED as error:
        raise DataError(f"{archive}: damaged archive: {error}; delete it and fetch it again") from error
    if not written:
        raise DataError(f"{archive}: nothing in it" + (f" under {strip!r}" if strip else ""))
    return list(written)


def _entries(archive: Path, raw: IO[bytes]) -> Iterator[tuple[str, Stream]]:
    """Name and bytes of every regular file; whatever is neither file nor folder stops it."""
    # by name: a file of zeros, compressed, would pass for an empty tar
    if archive.suffix == ".zip":
        yield from _zip_entries(archive, raw)
    elif archive.suffix == ".gz" and not archive.name.endswith(".tar.gz"):
        yield archive.name, raw
    else:
        yield from _tar_entries(archive, raw)


def _zip_entries(archive: Path, raw: IO[bytes]) -> Iterator[tuple[str, Stream]]:
    with zipfile.ZipFile(raw) as opened:
        for entry in opened.infolist():
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise DataError(f"{archive}: {entry.filename!r} is a link or device; the archive is refused")
            if entry.header_offset < 0:
                raise zipfile.BadZipFile(f"{entry.filename!r} begins before the file does")
            if not entry.is_dir():
                with opened.open(entry) as stream:
                    yield entry.filename, stream


def _tar_entries(archive: Path, raw: IO[bytes]) -> Iterator[tuple[str, Stream]]:
    with tarfile.open(fileobj=raw) as opened:
        for entry in opened:
            if not (entry.isfile() or entry.isdir()):
                raise DataError(f"{archive}: {entry.name!r} is a link or device; the archive is refused")
            stream = opened.extractfile(entry) if entry.isfile() else None
            if stream is not None:
                yield entry.name, stream


def _safe(archive: Path, name: str, strip: str) -> str | None:
    """The place of an entry below the target; ``None`` for entries outside ``strip``."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts[:1]) or "\0" in name:
        raise DataError(f"{archive}: the entry {name!r} would leave the folder; the archive is refused")
    if strip:
        if not path.is_relative_to(strip) or path == PurePosixPath(strip):
            return None
        path = path.relative_to(strip)
    return path.as_posix()


def _move(source: Path, place: Path) -> None:
    try:
        source.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # a folder below the root may be a link to another disk
        with atomic_path(place) as temporary:
            shutil.copyfile(source, temporary)


class _Quota:
    """Counts what is written against the limits and the free disk."""

    def __init__(self, archive: Path, folder: Path, limits: Limits) -> None:
        self.archive = archive
        self.entries_left = limits.entries
        self.bytes_left = int(limits.ratio * max(archive.stat().st_size, 1))
        self.free = shutil.disk_usage(folder).free

    def write(self, stream: Stream, path: Path) -> None:
        self.entries_left -= 1
        if self.entries_left < 0:
            raise DataError(f"{self.archive}: far more entries than any dataset has; the archive is refused")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            while chunk := stream.read(_CHUNK):
                self._take(len(chunk))
                out.write(chunk)

    def _take(self, count: int) -> None:
        self.bytes_left -= count
        self.free -= count
        if self.bytes_left < 0:
            raise DataError(f"{self.archive}: grows far beyond its size when unpacked; the archive is refused")
        if self.free < 0:
            raise StorageError(f"{self.archive}: no space to unpack it; free some or choose --root")
