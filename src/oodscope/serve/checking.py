"""Checking: from an upload to a folder that holds one verified entry, and nothing else."""

from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.data.shelf.unpack import Limits as ArchiveLimits
from oodscope.data.shelf.unpack import unpack
from oodscope.serve.receiving import ARCHIVES, PARTS

_MOST_FILES = 16


def check(upload: Path, ready: Path, unpacked: int) -> str:
    """Unpack and verify an upload; the id of its entry, which then lies in ``ready`` under that name.

    It runs in a process of its own. Nothing that was uploaded is executed or unpickled: an entry is JSON and Parquet.

    Parameters
    ----------
    upload : folder of what was received.
    ready : folder for the result; the caller moves it to its place.
    unpacked : most bytes of the files in an archive.
    """
    from oodscope.protocols.leaderboard import verify
    from oodscope.results.leaderboard import read_entry

    found = _files(upload, unpacked)
    entry = read_entry(found)
    place = ready / entry.id
    found.rename(place)
    verify(place)
    return entry.id


def _files(upload: Path, unpacked: int) -> Path:
    """The folder that holds the two files: as received, or as unpacked, below one folder of any name perhaps."""
    archive = next((upload / name for name in set(ARCHIVES.values()) if (upload / name).exists()), None)
    folder = upload
    if archive is not None:
        folder = upload / "unpacked"
        ratio = min(ArchiveLimits.ratio, unpacked / max(archive.stat().st_size, 1))
        try:
            written = unpack(archive, folder, limits=ArchiveLimits(entries=_MOST_FILES, ratio=ratio))
        except DataError as error:
            raise DataError(str(error).replace(f"{archive}: ", "the archive: ", 1)) from error
        tops = {path.parts[0] for path in written}
        if len(tops) == 1 and all(len(path.parts) == 2 for path in written):
            folder /= tops.pop()
        archive.unlink()
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if strange := sorted(present - set(PARTS.values())):
        raise DataError(f"an entry is entry.json and scores.parquet; {strange[0]!r} does not belong to it")
    return folder
