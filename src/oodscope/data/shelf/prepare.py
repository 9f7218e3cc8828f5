"""Get what can be got, unpack it, verify it, and say what a person must fetch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from oodscope.base.errors import DataError
from oodscope.base.files import storage_errors
from oodscope.data.cards import Card, Fetch, load_card
from oodscope.data.shelf.check import SplitReport, check_split
from oodscope.data.shelf.download import download, md5_of
from oodscope.data.shelf.state import State, state_of
from oodscope.data.shelf.unpack import ARCHIVES, unpack
from oodscope.execution import SILENT, Progress

DOWNLOADS = "downloads"


@dataclass(frozen=True)
class Wanted:
    """One split that somebody needs."""

    card: Card
    split: str
    optional: bool = False


@dataclass
class Prepared:
    """What preparing came to."""

    reports: list[SplitReport] = field(default_factory=list)
    by_hand: dict[str, list[Fetch]] = field(default_factory=dict)
    """What a person must fetch, per dataset."""
    states: dict[tuple[str, str], State] = field(default_factory=dict)

    def lacking(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """What is needed and still not ready."""
        return [
            each for each in wanted if not each.optional and self.states[each.card.name, each.split] is not State.READY
        ]


def prepare(
    wanted: Sequence[Wanted],
    root: Path,
    confirm: Callable[[list[str]], bool] = lambda urls: True,
    progress: Progress = SILENT,
) -> Prepared:
    """Bring splits under ``root`` and verify them.

    What is there is verified first and fetched again only if it fails. Archives got by hand are expected under
    ``downloads/``; those downloaded here are deleted once their content is verified.

    Parameters
    ----------
    confirm : asked once, with the addresses that would be downloaded.
    """
    with storage_errors(root):
        (root / ".oodscope").mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".oodscope" / "lock").acquire()
    with lock:
        return _prepare(wanted, root, confirm, progress)


def _prepare(
    wanted: Sequence[Wanted], root: Path, confirm: Callable[[list[str]], bool], progress: Progress
) -> Prepared:
    outcome = Prepared()
    needed = [each for each in wanted if not _settled(each, root, outcome, progress)]
    files = _files(needed)
    urls = [fetch.url for fetch in files if fetch.url and not (root / DOWNLOADS / fetch.name).is_file()]
    agreed = not urls or confirm(list(dict.fromkeys(urls)))
    fetched = [archive for fetch in files if (archive := _get(fetch, root, agreed, progress)) is not None]
    for each in needed:
        if state_of(each.card, each.split, root) is State.UNVERIFIED:
            outcome.reports.append(check_split(each.card, each.split, root, progress))
    _conclude(wanted, root, outcome)
    if not outcome.lacking(wanted):
        for archive in fetched:
            archive.unlink(missing_ok=True)
    return outcome


def _settled(each: Wanted, root: Path, outcome: Prepared, progress: Progress) -> bool:
    state = state_of(each.card, each.split, root)
    if state is State.UNVERIFIED:
        report = check_split(each.card, each.split, root, progress)
        if report.ok:
            outcome.reports.append(report)
        return report.ok
    return state is State.READY


def _files(needed: Sequence[Wanted]) -> list[Fetch]:
    """What serves the needed splits, each file once."""
    found: dict[str, Fetch] = {}
    for each in needed:
        for card in (each.card, *map(load_card, each.card.requires)):
            for fetch in card.fetch:
                if not fetch.splits or each.split in fetch.splits or card is not each.card:
                    found[f"{fetch.name} {fetch.ask}"] = fetch
    return list(found.values())


def _get(fetch: Fetch, root: Path, agreed: bool, progress: Progress) -> Path | None:
    """Put one file's content in its place, downloaded if need be; the archive, if it was downloaded here."""
    archive = root / DOWNLOADS / fetch.name
    brought = bool(fetch.name) and archive.is_file()
    if fetch.url is not None and agreed:
        download(fetch.url, archive, fetch.md5, progress)
    elif not brought:
        return None
    elif fetch.md5 is not None and (actual := md5_of(archive)) != fetch.md5:
        raise DataError(f"{archive}: its MD5 is {actual}, not {fetch.md5}; fetch it again")
    if archive.name.endswith(ARCHIVES):
        unpack(archive, root / fetch.into, fetch.strip, progress=progress)
        return None if brought else archive
    (root / fetch.into).mkdir(parents=True, exist_ok=True)
    archive.replace(root / fetch.into / fetch.name)
    return None


def _conclude(wanted: Sequence[Wanted], root: Path, outcome: Prepared) -> None:
    for each in wanted:
        state = state_of(each.card, each.split, root)
        outcome.states[each.card.name, each.split] = state
        if state is State.READY:
            continue
        for card in (each.card, *map(load_card, each.card.requires)):
            asked = [f for f in card.fetch if f.url is None and (not f.splits or each.split in f.splits)]
            if asked:
                outcome.by_hand[card.name] = asked
