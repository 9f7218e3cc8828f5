"""Download what has an address, unpack it, verify it, and say what must be fetched by hand."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from oodscope.base.errors import DataError
from oodscope.base.files import storage_errors
from oodscope.data.public.cards import Card, Fetch
from oodscope.data.public.check import SplitReport, check_split
from oodscope.data.public.download import download, md5_of
from oodscope.data.public.state import State, state_of
from oodscope.data.public.unpack import ARCHIVES, unpack
from oodscope.execution.progress import SILENT, Progress


@dataclass(frozen=True)
class Wanted:
    """One split that somebody needs."""

    card: Card
    split: str
    optional: bool = False


@dataclass(frozen=True)
class Item:
    """One file to get."""

    card: Card
    fetch: Fetch

    def archive(self, root: Path) -> Path:
        """Its place until it is unpacked: per dataset, because MNIST and its kin call their files the same."""
        return root / "downloads" / self.card.name / self.fetch.name


@dataclass
class Prepared:
    """What preparing came to."""

    by_hand: dict[tuple[str, str | None], Item] = field(default_factory=dict)
    """What must be fetched by hand, each file once, by dataset and wording."""
    failures: list[str] = field(default_factory=list)
    """Downloads and archives that failed, one line each."""
    states: dict[tuple[str, str], State] = field(default_factory=dict)

    def lacking(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """What is needed and still not ready."""
        return [
            each for each in wanted if not each.optional and self.states[each.card.name, each.split] is not State.READY
        ]


def prepare(
    wanted: Sequence[Wanted],
    root: Path,
    confirm: Callable[[list[Item]], bool] = lambda items: True,
    report_split: Callable[[SplitReport], None] = lambda report: None,
    progress: Progress = SILENT,
) -> Prepared:
    """Bring splits under ``root`` and verify them.

    What is there is verified first and fetched again only if it fails. Archives got by hand are expected under
    ``downloads/DATASET/``; those downloaded here are deleted once their content is verified.

    Parameters
    ----------
    confirm : asked once, with the files that would be downloaded.
    report_split : called with what each check found, as soon as it is known.
    """
    with storage_errors(root):
        (root / ".oodscope").mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".oodscope" / "lock").acquire()
    with lock:
        return _prepare(wanted, root, confirm, report_split, progress)


def _prepare(
    wanted: Sequence[Wanted],
    root: Path,
    confirm: Callable[[list[Item]], bool],
    report_split: Callable[[SplitReport], None],
    progress: Progress,
) -> Prepared:
    outcome = Prepared()
    needed = [each for each in wanted if not _settled(each, root, report_split, progress)]
    files = _files(needed)
    absent = {item.fetch.url: item for item in files if item.fetch.url and not item.archive(root).is_file()}
    agreed = not absent or confirm(list(absent.values()))
    fetched = _get_all(files, root, agreed, outcome, progress)
    for each in needed:
        if state_of(each.card, each.split, root) is State.UNVERIFIED:
            report_split(check_split(each.card, each.split, root, progress))
    _conclude(wanted, root, outcome)
    if not outcome.lacking(wanted):
        for archive in fetched:
            archive.unlink(missing_ok=True)
    return outcome


def _get_all(files: Sequence[Item], root: Path, agreed: bool, outcome: Prepared, progress: Progress) -> list[Path]:
    """Get every file; one that fails does not keep the others from coming."""
    fetched = []
    for item in files:
        try:
            archive = _get(item, root, agreed, progress)
        except DataError as error:
            outcome.failures.append(str(error))
            if item.fetch.ask:
                outcome.by_hand[item.card.name, item.fetch.ask] = item
        else:
            fetched += [] if archive is None else [archive]
    return fetched


def _settled(each: Wanted, root: Path, report_split: Callable[[SplitReport], None], progress: Progress) -> bool:
    state = state_of(each.card, each.split, root)
    if state is State.UNVERIFIED:
        report = check_split(each.card, each.split, root, progress)
        report_split(report)
        return report.ok
    return state is State.READY


def _files(needed: Sequence[Wanted]) -> list[Item]:
    """What serves the needed splits, each file once."""
    found = {(item.card.name, item.fetch.name, item.fetch.ask): item for each in needed for item in _serving(each)}
    return list(found.values())


def _serving(each: Wanted) -> Iterator[Item]:
    for card, fetch in each.card.files_for(each.split):
        yield Item(card, fetch)


def _get(item: Item, root: Path, agreed: bool, progress: Progress) -> Path | None:
    """Put one file's content in its place, downloaded if need be; the archive, if it was downloaded here."""
    fetch, archive = item.fetch, item.archive(root)
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
        if state is not State.READY:
            by_hand = {(item.card.name, item.fetch.ask): item for item in _serving(each) if item.fetch.url is None}
            outcome.by_hand |= {key: item for key, item in by_hand.items() if key not in outcome.by_hand}
