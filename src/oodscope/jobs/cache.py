"""The cache: what it holds, whether it is whole, and what may go."""

import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oodscope.activations.store import store
from oodscope.activations.store.packs import pack_root
from oodscope.activations.store.shards import DamagedError, check_shard
from oodscope.base.errors import StorageError, UnknownNameError, UsageError
from oodscope.base.files import cache_root
from oodscope.base.place import Place, Stored, is_url, open_place
from oodscope.training.loop.finished import check_finished


@dataclass(frozen=True)
class Kind:
    """One folder of the cache.

    Parameters
    ----------
    depth : parts of a file's name that make an entry: what is kept or removed together.
    on_request : whether it is pruned only where it is named, because nothing here can compute it again.
    """

    summary: str
    depth: int = 1
    on_request: bool = False


KINDS = {
    "activations": Kind("what networks gave for images, by content", depth=2),
    "pixels": Kind("images decoded once ('oodscope data pack')", depth=2),
    "training": Kind("networks that jobs trained"),
    "generated": Kind("generators and generated sets"),
    "glyphs": Kind("rendered images of the glyphs benchmark"),
    "examined": Kind("what examining leaderboard entries gave"),
    "remote": Kind("copies of files of object stores"),
    "manifests": Kind("lists of files with their digests"),
    "shards": Kind("indices of WebDataset archives"),
    "rows": Kind("indices of Hugging Face datasets"),
    "data": Kind("downloaded datasets", on_request=True),
    "other": Kind("all else", on_request=True),
}

IN_USE = 600.0
"""Seconds since its last use for which an entry counts as worked with, and stays."""

LEFT_BEHIND = 86_400.0
"""Seconds after which an unfinished file is what a killed process left."""

_AGES = {"h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Entry:
    """What is kept or removed together: the columns of one network and one set, one trained network, one archive.

    Parameters
    ----------
    place, files : where it lies, and its files there.
    reason : why nothing will ever read it again; empty where something may.
    """

    kind: str
    name: str
    place: Place
    files: tuple[Stored, ...]
    reason: str = ""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def used(self) -> float:
        """When it was last read or written, as far as the file system tells."""
        return max(file.used for file in self.files)

    def remove(self) -> None:
        """Remove its files; a file that may not be removed is one line."""
        for file in self.files:
            if not self.place.remove(file.name):
                raise StorageError(f"{self.place}/{file.name}: cannot be removed; its folder belongs to another user")


def read_age(text: str) -> float:
    """Seconds from ``90d``, ``12h`` or ``2w``."""
    found = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if found is None:
        raise UsageError(f"--older {text}: write hours, days or weeks, such as 12h, 90d or 4w")
    return int(found[1]) * _AGES[found[2]]


def read_bytes(text: str) -> int:
    """Bytes from ``500G``: powers of a thousand."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,3})?)([KMGT]?)B?", text.strip())
    if found is None:
        raise UsageError(f"--keep-under {text}: write bytes as 500G, 1.5T or 200M")
    return int(float(found[1]) * _SIZES[found[2]])


def entries(kinds: Collection[str] = ()) -> list[Entry]:
    """All entries of some kinds, or of all; the least recently used first."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind of cache entry", kind, KINDS, f"Known: {', '.join(KINDS)}")
    found = [entry for kind, place in _places() for entry in _grouped(kind, place)]
    return sorted((each for each in found if not kinds or each.kind in kinds), key=lambda each: (each.used, each.name))


def _places() -> Iterator[tuple[str, Place]]:
    """The cache, and what lies elsewhere because a variable of the environment says so."""
    root = cache_root()
    yield "", open_place(root)
    for kind, where in (("activations", store.store_root()), ("pixels", pack_root())):
        if is_url(str(where)) or not Path(where).absolute().is_relative_to(root.absolute()):
            yield kind, open_place(where)


def _grouped(kind: str, place: Place) -> Iterator[Entry]:
    """The entries of a place: of one kind, or of the whole cache, whose first folder is the kind."""
    groups: dict[tuple[str, str], list[Stored]] = {}
    for file in place.walk():
        parts = file.name.split("/")
        of = kind or (parts[0] if parts[0] in KINDS and len(parts) > 1 else "other")
        first = 0 if kind or of == "other" else 1
        if parts[-1].startswith(".") and parts[-1].endswith(".tmp"):
            name = file.name
        else:
            name = "/".join(parts[first : first + KINDS[of].depth])
        groups.setdefault((of, name), []).append(file)
    for (of, name), files in groups.items():
        yield Entry(of, name, place, tuple(files), _useless(of, files))


def _useless(kind: str, files: Sequence[Stored]) -> str:
    if all(file.name.endswith(".tmp") for file in files):
        return "left by a killed process" if time.time() - files[0].used > LEFT_BEHIND else ""
    if kind in ("activations", "pixels") and not any(file.name.endswith(".safetensors") for file in files):
        return "of an older version"
    return ""


def chosen(every: Sequence[Entry], *, older: float | None = None, keep_under: int | None = None) -> list[Entry]:
    """What a pruning removes, the least recently used first.

    What nothing will read again goes in any case; what was used within the last ten minutes stays in any case.

    Parameters
    ----------
    every : entries, the least recently used first.
    older : seconds without use from which on an entry goes.
    keep_under : bytes that may stay.
    """
    now = time.time()
    idle = [each for each in every if now - each.used > IN_USE]
    going = [each for each in idle if each.reason or (older is not None and now - each.used > older)]
    if keep_under is not None:
        names = {(each.kind, each.name) for each in going}
        left = sum(each.bytes for each in every if (each.kind, each.name) not in names)
        for each in idle:
            if left <= keep_under:
                break
            if (each.kind, each.name) not in names:
                going.append(each)
                left -= each.bytes
    return going


def prunable(every: Sequence[Entry], kinds: Collection[str]) -> list[Entry]:
    """Entries that may be pruned: those of the kinds that are named, or of all that can be computed again."""
    return [each for each in every if each.kind in kinds or not (kinds or KINDS[each.kind].on_request)]


def damaged(every: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
    """Entries that do not hold what they say, with the reason; activations, packs and trainings are looked at."""
    for entry in every:
        try:
            for file in entry.files:
                if entry.kind in ("activations", "pixels") and file.name.endswith(".safetensors"):
                    check_shard(entry.place.local(file.name), file.name.rpartition("/")[0])
                if entry.kind == "training" and file.name.endswith("/training.json"):
                    check_finished(entry.place.local(file.name).parent)
        except (DamagedError, StorageError) as error:
            yield entry, str(error)
