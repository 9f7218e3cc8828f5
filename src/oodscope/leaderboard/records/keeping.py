"""What the keeper of a board writes beside its entries: receipts of re-executions, errata, pinned image lists.

These files are not part of an entry: a folder that holds more than ``entry.json`` and ``scores.parquet`` is refused, so
nobody submits a receipt of their own. A board is a folder:

``ID/``
    an entry.
``receipts/ID@001.json``
    what came out when the detector of an entry was re-executed; the last one counts.
``received/ID.json``
    when and from whom a server received an entry.
``lists/NAME.json``
    the images of a benchmark, by list hash; entries with others are refused.
``errata.json``
    which entries were superseded, by which, and why.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field

from oodscope.base.boundedjson import read_bounded_json
from oodscope.base.config import parse
from oodscope.base.errors import DataError, OodscopeError, StorageError
from oodscope.base.files import write_text
from oodscope.base.hashing import fingerprint
from oodscope.leaderboard.records.board import Erratum
from oodscope.leaderboard.records.folder import ENTRY
from oodscope.leaderboard.records.records import Count, Part
from oodscope.leaderboard.records.standing import Covered
from oodscope.leaderboard.records.text import Digest, Line, Name, Slug

RECEIPTS, RECEIVED, LISTS, ERRATA = "receipts", "received", "lists", "errata.json"
RESERVED = (RECEIPTS, RECEIVED, LISTS, ERRATA)
"""Names of the board's own files, which no entry may have."""

P = TypeVar("P", bound=Part)


class Stamp(Part):
    """When a server received an entry, and from whom: the entry itself is not believed in this."""

    schema_version: Literal[1] = 1
    entry: Slug
    received: Line
    submitter: Name


class Receipt(Part):
    """What came out when the detector of an entry was re-executed on published activations.

    Parameters
    ----------
    record, scores, activations : checksums of the entry's two files and of the activations' manifest.
    detector : which class ran, and its version.
    covered : what was computed again or compared with published lists; whatever is not named here was not.
    predictions : rows of the entry whose prediction is not the arg max of the published logits.
    in_order, repeated, shuffled, one_by_one : the largest deviation of a score, in units of the scores' spread: from
        the submitted scores, run in order; and from that run, when run again, with all images of all sets shuffled into
        one batch, and image by image.
    tolerance : deviations up to here are rounding.
    verdict : ``re-executed``; ``transductive``: scores depend on the other images; ``random``: they change from run to
        run; ``different``: scores, predictions, labels or searched parameters are not those submitted.
    reason : of the verdict ``different``, what differs.
    """

    schema_version: Literal[2] = 2
    entry: Slug
    record: Digest
    scores: Digest
    activations: Digest
    weights_hash: Line
    detector: Name
    detector_version: int
    covered: tuple[Covered, ...]
    predictions: Count
    in_order: float = Field(ge=0)
    repeated: float = Field(ge=0)
    shuffled: float = Field(ge=0)
    one_by_one: float = Field(ge=0)
    one_by_one_rows: Count
    tolerance: float = Field(gt=0)
    verdict: Literal["re-executed", "transductive", "random", "different"]
    reason: Line = ""
    created: Line
    oodscope_version: Line


class PinnedLists(Part):
    """The images of a benchmark: role, number and list hash of each set."""

    schema_version: Literal[1] = 1
    name: Name
    version: Name
    sets: dict[Name, tuple[Name, Count, Digest]]


class _Superseded(Part):
    old: Slug
    new: Slug
    reason: Name
    date: Line


class _Errata(Part):
    schema_version: Literal[1] = 1
    errata: tuple[_Superseded, ...] = ()


def entry_folders(board: Path | str) -> list[Path]:
    """The folders of a board that hold an entry, sorted by id; hidden ones, in which a server receives, do not."""
    board = Path(board)
    if not board.is_dir():
        raise DataError(f"{board}: no such folder")
    folders = [each for each in sorted(board.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    return [each for each in folders if each.name not in RESERVED]


def read_receipt(board: Path, entry: str) -> Receipt | None:
    """The last receipt of an entry; one that cannot be read is refused by name."""
    files = _receipts(board, entry)
    return _kept(Receipt, files[-1], "run leaderboard rerun again, which writes a new one") if files else None


def write_receipt(board: Path, receipt: Receipt) -> Path:
    """Add a receipt; earlier ones stay."""
    number = 1 + len(_receipts(board, receipt.entry))
    path = board / RECEIPTS / f"{receipt.entry}@{number:03d}.json"
    write_text(path, receipt.model_dump_json(indent=1) + "\n")
    return path


def read_stamp(board: Path, entry: str) -> Stamp | None:
    """When and from whom a server received an entry; nothing where its keeper put it there."""
    path = board / RECEIVED / f"{entry}.json"
    return _kept(Stamp, path, "restore it from a backup") if path.exists() else None


def write_stamp(board: Path, stamp: Stamp) -> Path:
    """Keep a stamp; the server writes it before the entry takes its place, so that none is ever without."""
    path = board / RECEIVED / f"{stamp.entry}.json"
    write_text(path, stamp.model_dump_json(indent=1) + "\n")
    return path


def _kept(record: type[P], path: Path, remedy: str) -> P:
    """A file of the board's keeper, or one line with its name and the remedy."""
    try:
        return parse(record, read_bounded_json(path), str(path))
    except OodscopeError as error:
        raise DataError(f"{error}; {remedy}, or remove the file") from error


def _receipts(board: Path, entry: str) -> list[Path]:
    return sorted((board / RECEIPTS).glob(f"{escape(entry)}@[0-9][0-9][0-9].json"))


def read_lists(board: Path) -> dict[tuple[str, str], PinnedLists]:
    """The pinned lists of every benchmark, by name and version."""
    files = sorted((board / LISTS).glob("*.json"))
    read = [_kept(PinnedLists, path, "pin them again with leaderboard pin") for path in files]
    return {(each.name, each.version): each for each in read}


def write_lists(board: Path, pinned: PinnedLists) -> Path:
    """Pin the images of a benchmark; those of a version never change."""
    known = read_lists(board).get((pinned.name, pinned.version))
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{pinned.name}@{pinned.version}").strip("-.")
    path = board / LISTS / f"{plain}-{fingerprint([pinned.name, pinned.version])[:8]}.json"
    if known is not None and known != pinned:
        raise StorageError(f"{path}: other images are pinned for this version; new images are a new version")
    write_text(path, pinned.model_dump_json(indent=1) + "\n")
    return path


def read_errata(board: Path) -> tuple[Erratum, ...]:
    """Everything that was ever superseded, oldest first."""
    path = board / ERRATA
    if not path.exists():
        return ()
    read = _kept(_Errata, path, "restore it from a backup")
    return tuple(Erratum(each.old, each.new, each.reason, each.date) for each in read.errata)


def append_erratum(board: Path, old: str, new: str, reason: str) -> Erratum:
    """Let ``new`` take the place of ``old``. Both stay where they are, and the reason is public."""
    errata = read_errata(board)
    for name in (old, new):
        if not (board / name / ENTRY).is_file():
            known = ", ".join(folder.name for folder in entry_folders(board)) or "none"
            raise DataError(f"{board}: no entry {name!r}. Entries: {known}")
    replaced = {each.old: each.new for each in errata}
    if old == new or old in _line(replaced, new):
        raise DataError(f"{new!r} cannot supersede {old!r}: it was superseded by it, or is the same")
    if old in replaced:
        raise DataError(f"{old!r} was superseded already, by {replaced[old]!r}; supersede that one")
    if not reason.strip():
        raise DataError("say why: --reason")
    added = Erratum(old, new, reason, datetime.now(UTC).date().isoformat())
    content = {"errata": [vars(each) for each in (*errata, added)]}
    written = parse(_Errata, content, "errata")
    write_text(board / ERRATA, written.model_dump_json(indent=1) + "\n")
    return read_errata(board)[-1]


def _line(replaced: dict[str, str], name: str) -> Iterator[str]:
    """The entries that took the place of ``name``, one after the other."""
    while name in replaced:
        name = replaced[name]
        yield name
