"""OpenedRuns: finished runs of every kind, found in folders, for whatever reads several of them at once."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from oodscope.base.config import parse
from oodscope.base.errors import DataError
from oodscope.protocols.registry import in_order
from oodscope.results.record import RunRecord
from oodscope.runs.attack import run as attacks
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval import run as crossvals
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.evaluation.run import RECORD, Result
from oodscope.runs.generated import run as generated_studies
from oodscope.runs.generated.run import GeneratedStudy

CROSS_VALIDATION = "cross_validation"
"""What pages call the protocol of a ``CrossValidationTable``, whose rows are folds and no measurements."""


@dataclass(frozen=True)
class OpenedRuns:
    """Runs by their kind, each in the order in which they were named or found.

    Parameters
    ----------
    crossval_records : one for each of ``crossvals``; None where the table lies alone, without its ``run.json``.
    """

    results: tuple[Result, ...] = ()
    attacks: tuple[Attack, ...] = ()
    crossvals: tuple[CrossValidationTable, ...] = ()
    generated: tuple[GeneratedStudy, ...] = ()
    crossval_records: tuple[RunRecord | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.crossval_records:
            object.__setattr__(self, "crossval_records", (None,) * len(self.crossvals))

    def protocols(self) -> list[str]:
        """The protocols under which something was measured; a view of one (``adversarial_budget``) is not one more."""
        named = [name for result in self.results for name in result.record.protocols]
        named += [CROSS_VALIDATION] * bool(self.crossvals)
        named += [attacks.PROTOCOL] * bool(self.attacks) + [generated_studies.PROTOCOL] * bool(self.generated)
        return in_order(named)

    def records(self) -> list[RunRecord]:
        """The record of every run, those of a study of generated sets one by one."""
        kept = [result.record for result in self.results] + [each.result.record for each in self.attacks]
        kept += [record for record in self.crossval_records if record is not None]
        return kept + [result.record for study in self.generated for result in study.results]


def open_runs(places: Iterable[Path | str]) -> OpenedRuns:
    """Open the runs that lie in folders.

    A folder's kind is told by its files: ``generated.json`` for a study of generated sets, ``attack.json`` beside
    ``run.json`` for an attack, ``crossval.parquet`` for a cross-validation, else ``run.json`` for an evaluation. A
    folder that is none of these is searched for some, downwards; what was interrupted there is passed over.
    """
    found: dict[Path, None] = {}
    for place in map(Path, places):
        if not place.is_dir():
            raise DataError(f"{place}: no such folder; name the folder of a run, or one that holds several")
        folders = list(_runs_in(place))
        if not folders:
            raise DataError(f"{place}: no finished run here, nor in any folder below")
        for folder in folders:
            if folder.resolve() in found:
                raise DataError(f"{folder}: the same run is named twice")
            found[folder.resolve()] = None
    if not found:
        raise DataError("no run to read; name the folders of some")
    opened = [_open(folder) for folder in found]
    _refuse_copies([(folder, record.id) for folder, one in zip(found, opened) for record in one.records()])
    return OpenedRuns(
        *(tuple(run for one in opened for run in getattr(one, field.name)) for field in fields(OpenedRuns)),
    )


def _runs_in(place: Path) -> Iterator[Path]:
    """Folders of finished runs, in the order of their names; what lies inside one belongs to it."""
    for here, below, files in os.walk(place):
        if {RECORD, crossvals.FILE, generated_studies.RECORD} & set(files):
            below.clear()
            yield Path(here)
        else:
            below.sort()


def _open(folder: Path) -> OpenedRuns:
    if (folder / generated_studies.RECORD).is_file():
        return OpenedRuns(generated=(GeneratedStudy.load(folder),))
    if (folder / attacks.RECORD).is_file():
        return OpenedRuns(attacks=(Attack.load(folder),))
    if (folder / crossvals.FILE).is_file():
        table = CrossValidationTable.load(folder)
        return OpenedRuns(crossvals=(table,), crossval_records=(_crossval_record(folder / RECORD),))
    return OpenedRuns(results=(Result.load(folder),))


def _crossval_record(path: Path) -> RunRecord | None:
    if not path.is_file():
        return None
    try:
        return parse(RunRecord, json.loads(path.read_text(encoding="utf-8")), str(path))
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from error


def _refuse_copies(named: Iterable[tuple[Path, str]]) -> None:
    first: dict[str, Path] = {}
    for folder, run in named:
        if run in first:
            raise DataError(f"{folder}: a copy of run {run!r}, which also lies in {first[run]}; name one of them")
        first[run] = folder
