"""The state of a split on disk. Nothing counts as ready until it was verified, and has not changed since."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from stat import S_ISREG

from oodscope.base.errors import DataError
from oodscope.base.files import write_text
from oodscope.base.hashing import fingerprint
from oodscope.data.public.cards import Card


class State(StrEnum):
    """How far a split can be trusted."""

    READY = "ready"
    UNVERIFIED = "unverified"
    PARTIAL = "partial"
    MISSING = "missing"


@dataclass(frozen=True)
class Listing:
    """The files a split is made of, with their sizes; ``None`` for a file that is not there."""

    sizes: dict[str, int | None]

    @property
    def key(self) -> str:
        """Of names and sizes: what a verification vouches for."""
        return fingerprint(self.sizes)

    @property
    def missing(self) -> list[str]:
        return [name for name, size in self.sizes.items() if size is None]


def list_files(card: Card, split: str, root: Path) -> Listing:
    """Every file that a split is made of: those named by its card, its lists, its folders."""
    layout = card.split(split)
    return Listing({name: _size(root / name) for name in (*layout.named, *layout.images(root))})


def state_of(card: Card, split: str, root: Path) -> State:
    """Looks at names and sizes only; what is inside the files is for ``check``."""
    try:
        listing = list_files(card, split, root)
    except DataError:
        # a list of files that is itself damaged: check says what is wrong with it
        return State.PARTIAL
    present = len(listing.sizes) - len(listing.missing)
    if present == 0:
        return State.MISSING
    expected = card.split(split).count or 0
    images = len(listing.sizes) - len(card.split(split).named)
    if listing.missing or 0 < images < expected:
        return State.PARTIAL
    return State.READY if _vouched(card, split, root) == _seal(card, split, listing) else State.UNVERIFIED


def mark_verified(card: Card, split: str, root: Path, listing: Listing, content: str) -> None:
    """Remember that exactly these files were found whole."""
    seal = {
        "seal": _seal(card, split, listing),
        "content": content,
        "checked": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_text(_marker(card, split, root), json.dumps(seal, indent=1) + "\n")


def forget(card: Card, split: str, root: Path) -> None:
    """Take back a verification."""
    _marker(card, split, root).unlink(missing_ok=True)


def _seal(card: Card, split: str, listing: Listing) -> str:
    # what the card expects is part of the seal: a card of a later version asks for a new verification
    return fingerprint(card.split(split).model_dump(mode="json"), listing.key)


def _vouched(card: Card, split: str, root: Path) -> str | None:
    try:
        seal = json.loads(_marker(card, split, root).read_text(encoding="utf-8"))
        return str(seal["seal"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _marker(card: Card, split: str, root: Path) -> Path:
    return root / ".oodscope" / "verified" / f"{card.name}.{split}.json"


def _size(path: Path) -> int | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if S_ISREG(status.st_mode) else None
