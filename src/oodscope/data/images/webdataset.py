"""WebDataset: images and labels side by side in tar files."""

import hashlib
import io
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UsageError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.images.decoding import EXTENSIONS, UnreadableImageError
from oodscope.data.images.encoded import EncodedSource
from oodscope.data.images.labels import read_labels
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress


@dataclass(frozen=True)
class Member:
    """One encoded image inside a tar file.

    Parameters
    ----------
    shard : the tar file.
    name : of the member; a name and nothing else, never a path that anything is written to.
    offset, size : where its bytes lie.
    digest : of its bytes.
    """

    shard: Path
    name: str
    offset: int
    size: int
    digest: bytes


class ShardSource(EncodedSource):
    """Members of tar files, in any order; nothing is extracted to disk."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)

    def __len__(self) -> int:
        return len(self.members)

    def encoded(self, index: int) -> BinaryIO:
        member = self.members[index]
        try:
            # opened each time: threads share no position in a file, and a thousand shards need no thousand handles
            with member.shard.open("rb") as stream:
                stream.seek(member.offset)
                content = stream.read(member.size)
        except OSError as error:
            raise UnreadableImageError(f"unreadable image {self.where(index)}: {error.strerror}") from error
        return io.BytesIO(content)

    def where(self, index: int) -> str:
        return f"{self.members[index].name!r} in {self.members[index].shard}"

    def name(self, index: int) -> str:
        return f"{self.members[index].shard.name}/{self.members[index].name}"

    def keeping(self, rows: Sequence[int]) -> "ShardSource":
        return ShardSource([self.members[row] for row in rows])

    def excerpt(self, rows: NDArray[np.int64]) -> "ShardSource":
        return ShardSource([self.members[row] for row in rows])

    def _digest_all(self) -> list[bytes]:
        return [member.digest for member in self.members]


FORMAT = 1
"""Raised whenever the meaning of a kept index changes."""

_BLOCK = 512
_LABELS = ("cls", "json")
_MOST_LABEL_BYTES = 1 << 20


@dataclass(frozen=True)
class Sample:
    """An image of a shard, with the text of its label if it has one, and the kind of file that said so."""

    image: Member
    kind: str
    label: str


def index_shard(shard: Path) -> list[Sample]:
    """The samples of a shard: from the cache if the file has not changed since, otherwise read once."""
    try:
        status = shard.stat()
    except OSError as error:
        raise DataError(f"cannot read {shard}: {error.strerror}") from error
    state = [FORMAT, os.path.realpath(shard), status.st_size, status.st_mtime_ns]
    kept = cache_root() / "shards" / f"{fingerprint(state)[:32]}.npz"
    samples = _load(kept, shard)
    if samples is None:
        samples = _scan(shard)
        _keep(kept, samples)
    return samples


def _scan(shard: Path) -> list[Sample]:
    images: dict[str, Member] = {}
    labels: dict[str, tuple[str, str]] = {}
    try:
        with tarfile.open(shard, "r:") as archive, shard.open("rb") as stream:
            for entry in archive:
                # links and devices lead elsewhere, and only names and bytes are wanted here
                if not entry.isreg() or entry.sparse is not None:
                    continue
                key, kind = _parts(entry.name)
                if f".{kind}" in EXTENSIONS:
                    if key in images:
                        raise DataError(f"{shard}: two images are called {_member_text(key)!r}")
                    images[key] = Member(
                        shard, _member_text(entry.name), entry.offset_data, entry.size, _digest(stream, entry, shard)
                    )
                elif kind in _LABELS and (key not in labels or kind == "cls"):
                    labels[key] = (kind, _label(stream, entry, shard))
            _check_end(stream, archive.offset, shard)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{shard}: not a whole, uncompressed tar file: {error}") from error
    bare = next((key for key in labels if key not in images), None)
    if bare is not None:
        raise DataError(f"{shard}: {_member_text(bare)!r} has a label and no image")
    return [Sample(image, *labels.get(key, ("", ""))) for key, image in images.items()]


def _parts(name: str) -> tuple[str, str]:
    """The key that the files of one sample share, and the last extension: ``a/7.seg.PNG`` is ``a/7`` and ``png``."""
    folder, _, file = name.rpartition("/")
    stem, _, extensions = file.partition(".")
    return f"{folder}/{stem}".lstrip("/"), extensions.rpartition(".")[2].lower()


def _digest(stream: BinaryIO, entry: tarfile.TarInfo, shard: Path) -> bytes:
    stream.seek(entry.offset_data)
    content = stream.read(entry.size)
    if len(content) < entry.size:
        raise DataError(f"{shard}: cut off inside {_member_text(entry.name)!r}; fetch or write it again")
    return hashlib.blake2b(content, digest_size=16).digest()


def _label(stream: BinaryIO, entry: tarfile.TarInfo, shard: Path) -> str:
    if entry.size > _MOST_LABEL_BYTES:
        raise DataError(f"{shard}: {_member_text(entry.name)!r} is too large for a label")
    stream.seek(entry.offset_data)
    try:
        return stream.read(entry.size).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{shard}: the label {_member_text(entry.name)!r} is not UTF-8 text") from error


def _check_end(stream: BinaryIO, offset: int, shard: Path) -> None:
    """A tar file ends with blocks of zeros; without them it was cut between two members."""
    stream.seek(offset)
    rest = stream.read(_BLOCK)
    if len(rest) < _BLOCK:
        raise DataError(f"{shard}: cut off: the end mark of a tar file is missing; fetch or write it again")
    while rest:
        if rest.strip(b"\0"):
            raise DataError(f"{shard}: goes on after its end mark; join tar files with 'tar --concatenate'")
        rest = stream.read(1 << 20)


def _member_text(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _keep(path: Path, samples: list[Sample]) -> None:
    columns = {
        "name": np.array([sample.image.name for sample in samples], dtype=np.str_),
        "offset": np.array([sample.image.offset for sample in samples], dtype=np.int64),
        "size": np.array([sample.image.size for sample in samples], dtype=np.int64),
        "digest": np.array([list(sample.image.digest) for sample in samples], dtype=np.uint8).reshape(-1, 16),
        "kind": np.array([sample.kind for sample in samples], dtype=np.str_),
        "label": np.array([sample.label for sample in samples], dtype=np.str_),
    }
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **columns)  # type: ignore[arg-type]


def _load(path: Path, shard: Path) -> list[Sample] | None:
    try:
        with np.load(path, allow_pickle=False) as kept:
            columns = [kept[name] for name in ("name", "offset", "size", "digest", "kind", "label")]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        # absent or broken: reading the shard again is the repair
        return None
    return [
        Sample(Member(shard, str(name), int(offset), int(size), digest.tobytes()), str(kind), str(label))
        for name, offset, size, digest, kind, label in zip(*columns)
    ]


_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_SHARDS = 100_000


def open_webdataset(name: str, pattern: Path | str, progress: Progress = SILENT) -> ImageSet:
    """Images inside one or more uncompressed tar files, which are read in place and never extracted.

    A sample is the files that share a name up to the first dot: an image (``.jpg``, ``.png``, ``.webp``, ...) and,
    for labelled sets, its label: ``.cls`` holds a number or the name of a class, ``.json`` has it as ``label`` or
    ``class``. Where each image lies, and its digest, is found in one pass over each shard and kept in the cache.

    Parameters
    ----------
    name : of the set.
    pattern : a tar file, or several: ``train-{000..009}.tar``, ``{a,b}.tar``, ``train-*.tar``.
    """
    shards = expand(name, str(pattern))
    samples: list[Sample] = []
    with progress.stage(f"index {name}", len(shards)) as advance:
        for shard in shards:
            samples += index_shard(shard)
            advance(1)
    if not samples:
        raise DataError(f"set {name!r}: no image in {pattern}")
    labels, names = _labels(name, samples)
    return ImageSet(name, ShardSource([sample.image for sample in samples]), labels, names)


def expand(name: str, pattern: str) -> list[Path]:
    """The shards that a pattern names, in order; each must exist."""
    braced = [pattern] if Path(pattern).exists() else _unbraced(pattern, _MOST_SHARDS)
    found: list[str] = []
    for each in braced:
        found += sorted(glob(each)) if has_magic(each) and not Path(each).exists() else [each]  # noqa: PTH207  # as typed, absolute or not
    shards = [Path(each) for each in dict.fromkeys(found)]
    missing = [shard for shard in shards if not shard.is_file()]
    if missing:
        raise DataError(
            f"set {name!r}: {len(missing)} of {len(shards)} shards {'is' if len(missing) == 1 else 'are'} missing, "
            f"the first: {missing[0]}"
        )
    if not shards:
        raise DataError(f"set {name!r}: no file matches {pattern}")
    return shards


def _unbraced(pattern: str, most: int) -> list[str]:
    """``a{08..10}`` is ``a08, a09, a10``; ``{x,y}`` is ``x, y``; several braces are combined, to ``most`` at most."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    inside = braces[1]
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if bounds:
        if max(map(len, bounds.groups())) > 9:
            raise UsageError(f"{pattern}: {{{inside[:40]}}} does not count upwards, or too far")
        first, last = int(bounds[1]), int(bounds[2])
        if not 0 <= last - first < most:
            raise UsageError(f"{pattern}: {{{inside}}} does not count upwards, or too far")
        # a leading zero means: all numbers as wide as this one
        choices = [str(number).zfill(len(bounds[1])) for number in range(first, last + 1)]
    else:
        choices = inside.split(",")
    head, tail = pattern[: braces.start()], pattern[braces.end() :]
    if len(choices) > most:
        raise UsageError(f"{pattern}: stands for more than {_MOST_SHARDS:,} shards")
    rests = _unbraced(tail, most // len(choices))
    if len(choices) * len(rests) > most:
        raise UsageError(f"{pattern}: stands for more than {_MOST_SHARDS:,} shards")
    return [head + choice + rest for choice in choices for rest in rests]


def _labels(name: str, samples: list[Sample]) -> tuple[list[int] | None, list[str]]:
    without = [sample for sample in samples if not sample.kind]
    if len(without) == len(samples):
        return None, []
    if without:
        first = without[0].image
        raise DataError(
            f"set {name!r}: {len(without)} of {len(samples)} images have no label (.cls or .json), the first: "
            f"{first.name!r} in {first.shard}"
        )
    places = [f"{sample.image.shard}, {sample.image.name!r}" for sample in samples]
    texts = [_text(sample, place) for sample, place in zip(samples, places)]
    return read_labels(texts, places)


def _text(sample: Sample, place: str) -> str:
    if sample.kind == "cls":
        return sample.label
    try:
        content: Any = json.loads(sample.label)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: its .json is not valid JSON: {error}") from error
    for key in ("label", "class"):
        if isinstance(content, dict) and isinstance(content.get(key), str | int):
            return str(content[key])
    raise DataError(f"{place}: its .json has no 'label' or 'class' that is a number or a name")
