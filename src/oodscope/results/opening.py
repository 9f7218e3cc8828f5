"""``open_runs``: finished runs of every kind, found in folders."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from oodscope.base.errors import DataError, OodscopeError, UsageError
from oodscope.results.run import RUNS, Run
from oodscope.results.runfile import RECORD, read_runfile

R = TypeVar("R", bound=Run)


def open_runs(places: Path | str | Iterable[Path | str]) -> list[Run]:
    """Open the runs that lie in a folder, or in several.

    A folder with ``run.json`` is a run, of the kind that this file says; any other is searched for some, downwards, and
    what was interrupted there is passed over::

        for run in oods.open_runs("runs"):
            print(run.kind, run.record.id, run.table())

    Examples
    --------
    >>> _ = result.save(folder / "one")
    >>> [run.kind for run in oods.open_runs(folder)]
    ['evaluation']
    """
    named = [places] if isinstance(places, (Path, str)) else list(places)
    folders: dict[Path, None] = {}
    for place in map(Path, named):
        if not place.is_dir():
            raise DataError(f"{place}: no such folder; name the folder of a run, or one that holds several")
        below = list(_runs_in(place))
        if not below:
            raise DataError(f"{place}: no finished run here, nor in any folder below")
        for folder in below:
            if folder.resolve() in folders:
                raise DataError(f"{folder}: the same run is named twice")
            folders[folder.resolve()] = None
    if not folders:
        raise DataError("no run to read; name the folders of some")
    runs = [load_run(folder) for folder in folders]
    _refuse_copies((folder, name) for folder, run in zip(folders, runs) for name in _ids(run))
    return runs


def load_run(folder: Path | str) -> Run:
    """The one run whose ``run.json`` lies in this folder."""
    folder = Path(folder)
    kind = read_runfile(folder).kind
    if kind not in RUNS:
        raise DataError(f"{folder}: a run of kind {kind!r}, which is not installed here. Known: {', '.join(RUNS)}")
    return RUNS.get(kind).load(folder)


def open_run(place: Path | str) -> Run:
    """The one run in a folder or below it; runs that another was made of do not count."""
    runs = open_runs(place)
    inner = {name for run in runs for name in run.record.parts}
    outer = [run for run in runs if run.record.id not in inner]
    if len(outer) != 1:
        raise OodscopeError(f"{place} holds {len(outer)} runs; a table is of one, name its folder")
    return outer[0]


def folder_of_run(place: Path | str) -> Path:
    """The folder of the one run here or below: ``evaluate --output`` names the folder in which a run gets its own.

    A place without any is given back as it is, for the error of whoever reads it.
    """
    place = Path(place)
    below = list(_runs_in(place))
    if len(below) > 1:
        some = ", ".join(str(folder) for folder in below[:3])
        more = ", ..." if len(below) > 3 else ""
        raise UsageError(f"{place} holds {len(below)} runs; name the folder of one: {some}{more}")
    return below[0] if below else place


def of_kind(runs: Iterable[Run], cls: type[R]) -> tuple[R, ...]:
    """The runs of one kind, in their order; a class that derives from this one and is of another kind is left out."""
    return tuple(run for run in runs if isinstance(run, cls) and run.kind == cls.kind)


def _runs_in(place: Path) -> Iterator[Path]:
    """Folders of finished runs, in the order of their names; what lies inside one belongs to it."""
    for here, below, files in os.walk(place):
        if RECORD in files:
            below.clear()
            yield Path(here)
        else:
            below.sort()


def _ids(run: Run) -> Sequence[str]:
    return list(dict.fromkeys([run.record.id, *(record.id for record in run.records())]))


def _refuse_copies(named: Iterable[tuple[Path, str]]) -> None:
    first: dict[str, Path] = {}
    for folder, run in named:
        if run in first:
            raise DataError(f"{folder}: a copy of run {run!r}, which also lies in {first[run]}; name one of them")
        first[run] = folder
