"""What lies where in a tar file: found in one pass, kept in the cache."""

import hashlib
import os
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.sources.decoding import EXTENSIONS
from oodscope.data.sources.shards import Member

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
                        raise DataError(f"{shard}: two images are called {_text(key)!r}")
                    images[key] = Member(
                        shard, _text(entry.name), entry.offset_data, entry.size, _digest(stream, entry, shard)
                    )
                elif kind in _LABELS and (key not in labels or kind == "cls"):
                    labels[key] = (kind, _label(stream, entry, shard))
            _check_end(stream, archive.offset, shard)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{shard}: not a whole, uncompressed tar file: {error}") from error
    bare = next((key for key in labels if key not in images), None)
    if bare is not None:
        raise DataError(f"{shard}: {_text(bare)!r} has a label and no image")
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
        raise DataError(f"{shard}: cut off inside {_text(entry.name)!r}; fetch or write it again")
    return hashlib.blake2b(content, digest_size=16).digest()


def _label(stream: BinaryIO, entry: tarfile.TarInfo, shard: Path) -> str:
    if entry.size > _MOST_LABEL_BYTES:
        raise DataError(f"{shard}: {_text(entry.name)!r} is too large for a label")
    stream.seek(entry.offset_data)
    try:
        return stream.read(entry.size).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{shard}: the label {_text(entry.name)!r} is no UTF-8 text") from error


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


def _text(name: str) -> str:
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
