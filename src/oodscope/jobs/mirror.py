"""Output by URL: runs are written to a folder of the cache, and published in an object store when they are done."""

from pathlib import Path

from oodscope.base.files import cache_root, write_text
from oodscope.base.hashing import fingerprint
from oodscope.base.place import is_url, open_place

MARKER = "published-at.txt"
"""The file of such a folder that says where its runs are published."""

_STAYS = ("plans", "results.sqlite")
"""What is of this machine alone: plans that are worked on, and the result store, which is no file for many writers."""


def output_folder(where: str) -> str:
    """The folder that a job writes to: the one that is named, or that of the cache which stands for a URL.

    The store is written to at once: who may not, hears it before the work.
    """
    if not is_url(where):
        return where
    url = where.rstrip("/")
    folder = cache_root() / "outputs" / fingerprint(url)[:16]
    open_place(url).replace(".oodscope", b"")
    write_text(folder / MARKER, url + "\n")
    return str(folder)


def publish(folder: Path) -> str | None:
    """Bring what is new in a folder to the object store that it stands for; the URL, ``None`` for other folders."""
    marker = folder / MARKER
    if not marker.is_file():
        return None
    url = marker.read_text(encoding="utf-8").strip()
    place = open_place(url)
    there = {each.name: each for each in place.walk()}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name == MARKER or name.startswith(_STAYS):
            continue
        found, known = path.stat(), there.get(name)
        if known is None or known.bytes != found.st_size or known.used < found.st_mtime:
            place.replace(name, path.read_bytes())
    return url


def published_as(path: Path) -> str:
    """What to call a path in words for people: its URL, where its folder stands for one."""
    for folder in path.parents:
        if (folder / MARKER).is_file():
            url = (folder / MARKER).read_text(encoding="utf-8").strip()
            return f"{url}/{path.relative_to(folder).as_posix()}"
    return str(path)
