"""Result: what an evaluation hands back, in memory and as a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from oodscope.base.errors import DataError
from oodscope.document import html
from oodscope.document.chapter import Chapter
from oodscope.document.html import block
from oodscope.document.number import Number
from oodscope.document.table import Table
from oodscope.document.trial import Trial, leaders
from oodscope.document.weakness import Subject, Weakness
from oodscope.protocols.arrange import pivot
from oodscope.protocols.registry import headline_metrics
from oodscope.results.gallery import Gallery
from oodscope.results.measurement import Measurements
from oodscope.results.opening import folder_of_run
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, refuse_overwriting, write_runfile
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.chance import at_chance, class_count

if TYPE_CHECKING:
    import pandas as pd

_SCORES, _GALLERY = "scores.parquet", "gallery.safetensors"
_CURVES = 10
"""Detectors whose ROC curves a chapter lays over each other."""


@dataclass(frozen=True)
class Result(Run):
    """One evaluation: its record, its numbers, the scores they were computed from, and pictures of the hardest images.

    Parameters
    ----------
    gallery : for pages; None where no images were at hand, and in older results.

    Examples
    --------
    >>> folder_of_run = result.save(folder / "run")
    >>> oods.Result.load(folder_of_run).scores.detectors
    ['msp', 'knn']
    """

    kind: ClassVar[str] = "evaluation"

    record: RunRecord
    measurements: Measurements
    scores: ScoreTable
    gallery: Gallery | None = None

    def __post_init__(self) -> None:
        if not self.record.protocols:
            raise DataError(f"the record of run {self.record.id!r} names no protocol that it was evaluated under")
        if others := set(self.measurements.distinct("run")) - {self.record.id}:
            raise DataError(f"the record is of run {self.record.id!r}, a measurement of {min(others)!r}")

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """The table people publish.

        Parameters
        ----------
        name : a protocol; the run's first by default.
        metric : the protocol's headline by default.
        """
        found = pivot(self.measurements, name or self.record.protocols[0], metric)
        warning = chance_warning(self)
        return replace(found, notes=(warning, *found.notes)) if warning else found

    def _repr_html_(self) -> str:
        """For a notebook: what was run, and the first table of every protocol."""
        record = self.record
        caption = f"{record.model} on {record.benchmark} {record.benchmark_version}, run {record.id}"
        tables = [part for table in self.tables().values() for part in html.notebook_parts(table)]
        return block(f"<p><b>{escape(caption)}</b></p>", *tables)

    def to_dataframe(self) -> "pd.DataFrame":
        """The measurements, one tidy row each."""
        return self.measurements.to_dataframe()

    def tables(self) -> Mapping[str, Table]:
        """The first table of every protocol that measured something."""
        return {name: self.table(name) for name in self._measured()}

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """The one table, ``scores``."""
        return {"scores": self.scores}

    def trials(self) -> Sequence[Trial]:
        """One for each protocol: its headline metric, over the group that leads its table."""
        from oodscope.runs.evaluation.trials import trials_of  # which are made of results

        return trials_of(self)

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        """The worst set and the worst error rate of a detector with this run's network."""
        from oodscope.runs.evaluation.trials import weaknesses_of

        return weaknesses_of(self, subject)

    def chapter(self) -> Chapter:
        """Who leads each protocol, its tables, and the ROC curves on every OOD set."""
        from oodscope.runs.evaluation.figures.separation import roc_of_set  # drawn only where it is asked for

        names = [name for role in ("near", "far") for name in self.scores.sets(role)]
        leading = self.scores.detectors[:_CURVES]
        figures = (roc_of_set(self.scores, name, leading) for name in names)
        record = self.record
        title = f"{record.model} on {record.benchmark}"
        return Chapter(title, self.kind, leaders(self.trials()), (*self.tables().values(), *figures))

    def save(self, folder: Path | str) -> Path:
        """Write the measurements (Parquet, and CSV for people), the scores and the gallery, ``run.json`` last."""
        return self.save_as(self.kind, Path(folder))

    def save_as(self, kind: str, folder: Path) -> Path:
        """Write the same files as those of a run of another kind that holds a result, such as an attack."""
        refuse_overwriting(folder)
        names = [self.measurements.save(folder), _SCORES]
        self.scores.save(folder / _SCORES)
        if self.gallery is not None:
            self.gallery.save(folder / _GALLERY)
            names.append(_GALLERY)
        return write_runfile(folder, kind, self.record, names)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote; of an attack, the result that it holds."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind, "attack")
        gallery = Gallery.load(folder / _GALLERY) if _GALLERY in file.files else None
        return cls(file.record, Measurements.load(folder), ScoreTable.load(folder / _SCORES), gallery)

    @classmethod
    def open(cls, place: Path | str) -> Self:
        """The one result in a folder or below it, as ``--output`` of a command names it."""
        return cls.load(folder_of_run(place))

    def _measured(self) -> list[str]:
        return [
            name
            for name in self.record.protocols
            if self.measurements.filter(protocol=name, metric=headline_metrics(name, self.measurements)[0])
        ]


def chance_warning(result: Result) -> str:
    """A sentence where the classifier does no better than guessing on its own test set; else nothing."""
    for row in result.measurements.filter(metric="accuracy", detector=""):
        if row.set in result.scores.sets("id_test"):
            return at_chance(Number(row.value, row.low, row.high), class_count(result.scores))
    return ""
