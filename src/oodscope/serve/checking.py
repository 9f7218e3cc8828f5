"""Checking: from an upload to a folder that holds one verified entry, and nothing else."""

import shutil
from pathlib import Path

from oodscope.base.boundedjson import read_bounded_json
from oodscope.base.errors import DataError
from oodscope.data.public.unpack import Limits as ArchiveLimits
from oodscope.data.public.unpack import unpack
from oodscope.leaderboard.records.folder import ENTRY, SCORES
from oodscope.leaderboard.records.keeping import LISTS
from oodscope.leaderboard.verify.naming import check_id
from oodscope.serve.receiving import ARCHIVES

_MOST_FILES = 8


def check(upload: Path, ready: Path, board: Path, unpacked: int) -> str:
    """Unpack and verify an upload; the id of its entry, which then lies in ``ready`` under that name.

    It runs in a process of its own. Nothing that was uploaded is executed or unpickled: an entry is JSON and Parquet.

    Parameters
    ----------
    upload : folder of what was received.
    ready : folder for the result; the caller moves it to its place.
    board : folder of the entries, whose pinned lists count.
    unpacked : most bytes of the files in an archive.
    """
    from oodscope.leaderboard.verify.remembered import RememberedExaminer
    from oodscope.leaderboard.verify.verifying import verify

    found = _files(upload, unpacked)
    name = _name(read_bounded_json(found / ENTRY).get("id"))
    if (board / LISTS).is_dir():
        shutil.copytree(board / LISTS, ready / LISTS)
    place = ready / name
    found.rename(place)
    # what is found here is remembered, so that building the pages with it need not examine it again
    verify(place, RememberedExaminer())
    return name


def _name(id: object) -> str:
    """The id, checked before anything else is: it becomes the name of a folder."""
    try:
        return check_id(id)
    except DataError as error:
        raise DataError(f"{ENTRY}: {error}") from error


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
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if unexpected := sorted(present - {ENTRY, SCORES}):
        raise DataError(f"an entry is {ENTRY} and {SCORES} and nothing else; {unexpected[0]!r} does not belong to it")
    return folder
