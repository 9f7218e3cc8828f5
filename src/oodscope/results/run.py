"""Run: what every kind of run can be asked, and the kinds by name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.base.registry import Registry
from oodscope.document.chapter import Chapter
from oodscope.document.table import Table
from oodscope.document.trial import Trial, leaders
from oodscope.document.weakness import Subject, Weakness
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.scoretable import ScoreTable


class Run(ABC):
    """Something that was executed and recorded: an evaluation, an attack, a study, an audit.

    Whatever reads runs (``oodscope table``, ``figure``, ``report``, :func:`open_runs`) asks them through this class and
    knows no kind by name. A kind of another package derives from it and registers itself, by the entry point group
    ``oodscope.runs`` or by ``RUNS.register``; it is then saved, found, printed and shown like those of this package.

    ``record`` and ``measurements`` are attributes or properties of every run. A run with exactly one table of scores
    keeps it as its attribute ``scores``; all tables of a run, however many, are :meth:`score_tables`.

    Parameters
    ----------
    kind : the name in the registry, written to ``run.json``.

    Examples
    --------
    >>> isinstance(result, oods.Run), result.kind
    (True, 'evaluation')
    """

    kind: ClassVar[str]

    if TYPE_CHECKING:  # subclasses are often dataclasses, whose fields must find no attribute here

        @property
        def record(self) -> RunRecord:
            """What was run, on what, with what."""

        @property
        def measurements(self) -> Measurements:
            """Every number as a tidy row."""

    @abstractmethod
    def save(self, folder: Path | str) -> Path:
        """Write the run to a folder, ``run.json`` last (:func:`write_runfile`): a folder that has it is finished."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Every table by its name, the one that is read first in front."""

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """One table, the first unless named.

        Parameters
        ----------
        metric : the metric that it shows, for kinds that have tables of several.
        """
        if metric is not None:
            raise OodscopeError(f"the tables of a run of kind {self.kind} have no metric to choose; leave it out")
        return choose_table(self.tables(), name)

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """Every table of scores that its numbers are recomputed from, by name."""
        return {}

    def records(self) -> Sequence[RunRecord]:
        """The records shown as its provenance: its own, or those of the runs that it holds."""
        return (self.record,)

    def trials(self) -> Sequence[Trial]:
        """What scorecard and verdict rank detectors by."""
        return ()

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        """What speaks against a detector."""
        return ()

    def chapter(self) -> Chapter:
        """The run on a page: by default its trials in one sentence, and its tables."""
        named = ", ".join(filter(None, (self.record.benchmark, self.record.model)))
        title = f"{self.kind.replace('_', ' ').capitalize()}{f': {named}' if named else ''}"
        return Chapter(title, self.kind, leaders(self.trials()), tuple(self.tables().values()))


def choose_table(tables: Mapping[str, Table], name: str | None) -> Table:
    """The table of this name, the first by default; an unknown name suggests the nearest."""
    if not tables:
        raise OodscopeError("this run has no table")
    if name is not None and name not in tables:
        raise UnknownNameError("sheet", name, tables, f"This run has: {', '.join(tables)}")
    return next(iter(tables.values())) if name is None else tables[name]


RUNS: Registry[Run] = Registry("run", Run)  # type: ignore[type-abstract]
"""The kinds of runs: those of the package, of installed packages (``oodscope.runs``), and those registered in code."""
