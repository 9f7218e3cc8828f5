"""Verify: every number of an entry once more from its scores, by the same code as ``evaluate``."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from re import fullmatch
from typing import Any

from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.files import file_sha256
from oodscope.leaderboard.records.board import SEEDS, Board, Erratum
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import ENTRY, read_entry
from oodscope.leaderboard.records.keeping import (
    PinnedLists,
    Receipt,
    entry_folders,
    read_errata,
    read_lists,
    read_receipt,
    read_stamp,
)
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.verify.defaults import by_hand
from oodscope.leaderboard.verify.differing import check_claims, differences, unmeasured
from oodscope.leaderboard.verify.examining import Examiner, Placed, examine
from oodscope.leaderboard.verify.naming import check_id
from oodscope.results.scoretable import JUDGED

_LOG = logging.getLogger("oodscope.leaderboard")

LEARNED = ("id_train", "id_val")
"""Roles that nothing is judged on, but thresholds and fits depend on: their lists count where they are pinned."""

Pinned = Mapping[tuple[str, str], PinnedLists]


@dataclass(frozen=True)
class Verification:
    """A board, and the entries that were refused, each with the reason."""

    board: Board
    refused: Mapping[str, str]


def verify(folder: Path | str, examiner: Examiner = examine) -> Standing:
    """What became of one entry; an entry that cannot be believed is refused with a ``DataError``.

    Receipts and pinned lists are looked for beside the entry's folder, where the keeper of the board writes them.
    """
    folder = Path(folder)
    board = folder.absolute().parent
    standing, _ = _verified(folder, read_lists(board), board, examiner)
    return _superseded([standing], read_errata(board))[0]


def verify_all(folder: Path | str) -> Board:
    """The board of all entries of a folder; one that is refused stops it."""
    found = verify_each(folder)
    if found.refused:
        name, reason = next(iter(found.refused.items()))
        raise DataError(f"{len(found.refused)} entries are refused, such as {name}: {reason}")
    return found.board


def verify_each(folder: Path | str, examiner: Examiner = examine, newcomers: Iterable[Path] = ()) -> Verification:
    """The board of the entries that stand, and why the others do not: whatever is wrong with one costs only that one.

    Parameters
    ----------
    examiner : what computes the numbers; ``RememberedExaminer`` gives the same ones, faster the second time.
    newcomers : folders of entries elsewhere that are verified as if they were on the board already.
    """
    folder = Path(folder)
    pinned, errata = read_lists(folder), read_errata(folder)
    standings: list[Standing] = []
    placed: dict[str, Placed] = {}
    refused: dict[str, str] = {}
    for each in (*entry_folders(folder), *newcomers):
        try:
            standing, images = _verified(each, pinned, folder, examiner)
        except OodscopeError as error:
            refused[each.name] = str(error)
            continue
        except Exception as error:  # whatever nobody foresaw, in a file that somebody sent
            _LOG.exception("%s", each)
            refused[each.name] = f"{each}: could not be verified ({type(error).__name__}: {error})"
            continue
        standings.append(standing)
        placed[standing.entry.id] = images
    standings = _retrained(_agreeing(_superseded(standings, errata)))
    return Verification(Board(tuple(standings), errata, placed), refused)


def _verified(folder: Path, pinned: Pinned, board: Path, examiner: Examiner = examine) -> tuple[Standing, Placed]:
    entry = read_entry(folder)
    try:
        check_id(entry.id)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    stamp = read_stamp(board, entry.id)
    kept: dict[str, Any] = {} if stamp is None else {"received": stamp.received, "submitter": stamp.submitter}
    if entry.scores is None:
        return Standing(entry, "reported", entry.reported_measurements(), **kept), {}
    found = examiner(folder, entry)
    measurements = found.measurements
    try:
        unpinned = _check_pinned(entry, pinned)
        check_claims(entry, measurements)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    flags = [*unpinned, *found.flags]
    flags += [
        f"unmatched: {each.metric} of {each.group} {each.set} ({each.protocol}) was reported, but not measured"
        for each in unmeasured(entry, measurements)
    ]
    standing = Standing(
        entry,
        "recomputed",
        measurements,
        tuple(differences(entry, measurements)),
        tuple(flags),
        found_tuning="by hand" if by_hand(entry) else None,
        **kept,
    )
    if standing.disputed:
        count = f"{len(standing.disputed)} of {len(standing.differences)}"
        standing = replace(standing, flags=(f"disputed: {count} reported numbers lie beyond noise", *standing.flags))
    return _executed(standing, folder, board), found.placed


def _check_pinned(entry: Entry, pinned: Pinned) -> list[str]:
    """Compare the images with those that the board has pinned; without any, say that nobody did."""
    known = pinned.get((entry.benchmark.name, entry.benchmark.version))
    if known is None:
        return [f"unchecked: the board has no pinned lists of {entry.benchmark}"]
    sets = entry.benchmark.sets
    judged = {name: each for name, each in sets.items() if each.role in JUDGED}
    wanted = {name for name, (role, _, _) in known.sets.items() if role in JUDGED}
    if odd := sorted(wanted ^ set(judged)):
        raise DataError(f"{entry.benchmark} is judged on {', '.join(sorted(wanted))}; see {odd[0]!r}")
    learned = {name: each for name, each in sets.items() if each.role in LEARNED and each.list_hash != NOT_KNOWN}
    for name, each in {**judged, **{name: learned[name] for name in learned if name in known.sets}}.items():
        if (each.role, each.n, each.list_hash) != known.sets[name]:
            raise DataError(f"set {name!r}: not the images, labels or order of {entry.benchmark} (pinned list differs)")
    return [f"unchecked: the board has no pinned list of set {name}" for name in learned if name not in known.sets]


def _executed(standing: Standing, folder: Path, board: Path) -> Standing:
    """What a re-execution has shown, if it was of these very files."""
    try:
        receipt = read_receipt(board, standing.entry.id)
    except OodscopeError as error:
        return replace(standing, flags=(f"unchecked: the receipt cannot be read: {error}", *standing.flags))
    if receipt is None or not _about(receipt, standing.entry, folder):
        return standing
    if receipt.verdict == "re-executed":
        return replace(standing, tier="re-executed", covered=receipt.covered)
    if receipt.verdict == "transductive":
        flag = "transductive: scores change when images are shuffled or scored one by one"
        standing = replace(standing, found_track="transductive", flags=(flag, *standing.flags))
        # the scores may still be those of this detector, run on the test sets as a whole
        same = receipt.in_order <= receipt.tolerance
        return replace(standing, tier="re-executed", covered=receipt.covered) if same else standing
    words = {
        "random": "unreliable: scores change from run to run",
        "different": f"unreliable: {receipt.reason or 'the detector, run again, gives other scores'}",
    }
    return replace(standing, flags=(words[receipt.verdict], *standing.flags))


def _about(receipt: Receipt, entry: Entry, folder: Path) -> bool:
    """Whether a receipt speaks of the files as they are now."""
    same = entry.scores is not None and receipt.scores == entry.scores.sha256 and receipt.entry == entry.id
    return same and receipt.record == file_sha256(folder / ENTRY)


def _superseded(standings: Iterable[Standing], errata: Iterable[Erratum]) -> list[Standing]:
    replaced = {each.old: each for each in errata}
    return [
        replace(each, superseded_by=replaced[each.entry.id].new, reason=replaced[each.entry.id].reason)
        if each.entry.id in replaced
        else each
        for each in standings
    ]


def _agreeing(standings: list[Standing]) -> list[Standing]:
    """Flag entries whose images differ from those of an earlier entry of the same benchmark and set."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    found = []
    for each in sorted(standings, key=lambda each: (each.dated, each.entry.id)):
        odd = []
        for name, used in each.entry.benchmark.sets.items():
            if used.role in JUDGED and each.tier != "reported":
                key = (str(each.entry.benchmark), name)
                earlier, hashed = first.setdefault(key, (each.entry.id, used.list_hash))
                if hashed != used.list_hash:
                    odd.append(f"unchecked: set {name} is not the list of entry {earlier}, though of the same version")
        found.append(replace(each, flags=(*each.flags, *odd)))
    return found


def _retrained(standings: list[Standing]) -> list[Standing]:
    """Entries of one family that were all re-executed, on three networks or more, are retrained."""
    groups: dict[tuple[str, ...], list[Standing]] = {}
    for each in standings:
        if each.entry.group and each.tier == "re-executed" and not each.superseded_by:
            groups.setdefault(each.family, []).append(each)
    promoted = {
        each.entry.id
        for members in groups.values()
        if len(_networks(members)) >= SEEDS and len(_networks(members)) == len(members)
        for each in members
    }
    return [replace(each, tier="retrained") if each.entry.id in promoted else each for each in standings]


def _networks(members: Iterable[Standing]) -> set[str]:
    """Weights that are distinguished by a fingerprint."""
    return set(_known_weights(members))


def _known_weights(members: Iterable[Standing]) -> Iterator[str]:
    return (w for each in members if fullmatch("[0-9a-f]{64}", w := each.entry.model.weights_hash))
