"""Look into every file of a split: there, whole, decodable, and as many as there should be."""

import hashlib
import io
import math
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.data.images.decoding import open_picture
from oodscope.data.public.cards import Card
from oodscope.data.public.download import md5_of
from oodscope.data.public.layouts import AnyLayout
from oodscope.data.public.state import forget, list_files, mark_verified
from oodscope.execution.progress import SILENT, Progress


def idx_fault(path: Path) -> str | None:
    """What is wrong with the length of an idx file of bytes; nothing if header and size agree.

    The header is 0, 0, 8 (unsigned bytes), the number of dimensions, then each dimension in four bytes, big end first.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
        if len(start) < 4 or start[:3] != b"\x00\x00\x08":
            return "no idx file of bytes"
        dimensions = stream.read(4 * start[3])
    if len(dimensions) < 4 * start[3]:
        return "cut off in its header"
    expected = 4 + len(dimensions) + math.prod(struct.unpack(f">{start[3]}I", dimensions))
    actual = path.stat().st_size
    return None if actual == expected else f"{actual:,} bytes, its header says {expected:,}"


_BLOCK = 10_000

Fault = Literal["missing", "broken", "count"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: a file that is missing or broken, or a split that holds too few or too many."""

    kind: Fault
    where: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class SplitReport:
    """What a check of one split found.

    Parameters
    ----------
    content : fingerprint of names and bytes; equal for two people who hold the same files.
    checksums : whether published checksums stand for the files; without them a whole split is called unverified.
    """

    dataset: str
    split: str
    expected: int | None
    found: int | None
    content: str
    problems: list[Problem] = field(default_factory=list)
    checksums: bool = True

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "dataset": self.dataset,
            "split": self.split,
            "ok": self.ok,
            "expected": self.expected,
            "found": self.found,
            "content": self.content,
            "checksums": self.checksums,
            "problems": [{"kind": each.kind, "where": each.where, "detail": each.detail} for each in self.problems],
        }


def check_split(card: Card, split: str, root: Path, progress: Progress = SILENT) -> SplitReport:
    """Check one split, in threads; what is found whole is marked as verified, what is not loses its mark.

    Files with a known MD5 must have it; images must decode to their last row; the split must open and hold the
    number of images that its card states.
    """
    layout = card.split(split)
    forget(card, split, root)
    try:
        listing = list_files(card, split, root)
    except DataError as error:
        damaged = [Problem("broken", name, str(error)) for name in layout.named]
        return SplitReport(card.name, split, layout.count, None, "", damaged)
    problems = [Problem("missing", name) for name in listing.missing]
    present = [name for name, size in listing.sizes.items() if size is not None]
    digests = dict(_digest_files(layout, root, present, f"check {card.name}/{split}", problems, progress))
    content = fingerprint(digests)
    found = None if problems else _count(card, split, layout, root, problems)
    if not problems:
        mark_verified(card, split, root, listing, content)
    return SplitReport(card.name, split, layout.count, found, content, problems, card.has_checksums(split))


def _digest_files(
    layout: AnyLayout, root: Path, names: list[str], stage: str, problems: list[Problem], progress: Progress
) -> list[tuple[str, str]]:
    def look(name: str) -> tuple[str, str | Problem]:
        return name, _look_into(root / name, name, layout.named)

    digests = []
    with progress.stage(stage, len(names)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        # in blocks: a million waiting tasks would take more memory than the images
        for start in range(0, len(names), _BLOCK):
            for name, seen in pool.map(look, names[start : start + _BLOCK]):
                if isinstance(seen, Problem):
                    problems.append(seen)
                else:
                    digests.append((name, seen))
                advance(1)
    return digests


def _look_into(path: Path, name: str, known: dict[str, str | None]) -> str | Problem:
    try:
        if name not in known:
            return _decode(path.read_bytes())
        expected, actual = known[name], md5_of(path)
        fault = idx_fault(path) if name.endswith("-ubyte") else None
    except Exception as error:  # Pillow's decoders raise whatever they stumble over
        return Problem("broken", name, " ".join(str(error).split()) or type(error).__name__)
    if expected is not None and actual != expected:
        return Problem("broken", name, f"its MD5 is {actual}, not {expected}")
    return Problem("broken", name, fault) if fault else actual


def _decode(data: bytes) -> str:
    with open_picture(io.BytesIO(data)) as picture:
        picture.load()
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _count(card: Card, split: str, layout: AnyLayout, root: Path, problems: list[Problem]) -> int | None:
    where = f"{card.name}/{split}"
    try:
        found = len(layout.open(where, root))
    except OodscopeError as error:
        problems.append(Problem("broken", where, str(error)))
        return None
    if layout.count is not None and found != layout.count:
        problems.append(Problem("count", where, f"{found:,} images, {layout.count:,} expected"))
    return found
