"""StreamRun: detectors on streams of images, in memory and as a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from oodscope.base.errors import UnknownNameError
from oodscope.document.chapter import Block, Chapter, Prose
from oodscope.document.number import Number, marked
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.document.trial import Entry as TrialEntry
from oodscope.document.trial import Trial, make_trial
from oodscope.document.wording import explanation, heading, higher_is_better, label, unit_of
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run, choose_table
from oodscope.results.runfile import expect_kind, read_runfile, refuse_overwriting, write_runfile
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.stream.gains import Gain, gain_table, gains, summary
from oodscope.runs.stream.protocol import METRICS, TRANSDUCTIVE, StreamProtocol, Values, schedules_of

_SCORES = "scores.parquet"
_HEADLINE = METRICS[0].name
_SECTIONS = {
    "transductive": "transductive: learns from the images before, ranked apart",
    "constant": "constant: scores fixed before the stream",
}


@dataclass(frozen=True)
class StreamRun(Run):
    """Detectors on streams of images drawn by schedules: AUROC within windows, alarms, and gains over a baseline.

    Parameters
    ----------
    scores : the rows of each drawn stream in the order in which they came; ``unit`` says schedule, OOD set and draw.
    baseline : the constant detector that gains are measured against.
    """

    kind: ClassVar[str] = "stream"

    record: RunRecord
    measurements: Measurements
    scores: ScoreTable
    baseline: str

    @property
    def protocol(self) -> StreamProtocol:
        """The protocol with the options of this run."""
        return StreamProtocol(**self.scores.context.protocols.get(StreamProtocol.name, {}))

    def gains(self, metric: str = _HEADLINE) -> list[Gain]:
        """Every entry minus the baseline, by schedule and OOD set."""
        return list(gains(self._values, self.scores.detectors, self.baseline, metric))

    @cached_property
    def _values(self) -> Values:
        return self.protocol.values(self.scores)

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """One metric by detector, schedule and OOD set (AUROC within windows unless named), or ``gains``."""
        if name == "gains":
            return gain_table(self.gains(metric or _HEADLINE))
        if metric is None:
            return choose_table(self.tables(), name)
        if not self.measurements.filter(metric=metric):
            known = [each.name for each in METRICS]
            raise UnknownNameError("metric of a stream", metric, known, f"Known: {', '.join(known)}")
        return self._metric_table(metric)

    def tables(self) -> Mapping[str, Table]:
        """Every metric that was measured, and the gains over the baseline."""
        measured = [each.name for each in METRICS if self.measurements.filter(metric=each.name)]
        found = {metric: self._metric_table(metric) for metric in measured}
        if len(self.scores.detectors) > 1:
            found["gains"] = gain_table(self.gains())
        return found

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """The one table, ``scores``."""
        return {"scores": self.scores}

    def trials(self) -> Sequence[Trial]:
        """One for each schedule and OOD set: the detectors that learn from the stream, and none of the others."""
        learning = self.scores.context.extra.get(TRANSDUCTIVE, ())
        rows = [row for row in self.measurements.filter(metric=_HEADLINE) if row.detector in learning]
        found = []
        for schedule, name in dict.fromkeys((row.group, row.set) for row in rows):
            entries = [
                TrialEntry(row.detector, row.tuning, _number(row))
                for row in rows
                if (row.group, row.set) == (schedule, name)
            ]
            where = f"{self.record.benchmark}, {self.record.model}; {schedule}"
            model = self.record.model_fingerprint
            what = f"{label(_HEADLINE)} on {name}"
            found.append(make_trial("stream", where, what, entries, higher=True, model=model))
        return found

    def chapter(self) -> Chapter:
        """What learning from the stream gains, on which schedules, at how many false alarms."""
        from oodscope.runs.stream.figures import auroc_along  # drawn only where it is asked for

        tables = self.tables()
        wanted = ("gains", _HEADLINE, "auroc", "alarms_per_1000", "ood_flagged", "images_to_half_burst")
        blocks: tuple[Block, ...] = (
            Prose(self._about()),
            *(tables[name] for name in wanted if name in tables),
            *auroc_along(self.scores, self.protocol.windows),
        )
        title = f"Streams: {self.record.model} on {self.record.benchmark}"
        return Chapter(title, self.kind, summary(self.gains()) if "gains" in tables else "", blocks)

    def _about(self) -> str:
        units = {str(unit) for unit in self.scores.frame["unit"].cat.categories if not str(unit).isdigit()}
        lengths = sorted({f"{each.images:,}" for each in schedules_of(self.scores)})
        return (
            f"{len(units):,} streams of {' or '.join(lengths)} images, each drawn anew. Intervals are over streams: "
            "they speak of other streams of the same kind from the same images and network. A number without its "
            "schedule is no number, and numbers of two schedules are not averaged."
        )

    def save(self, folder: Path | str) -> Path:
        """Write the measurements and the scores, ``run.json`` last."""
        folder = Path(folder)
        refuse_overwriting(folder)
        names = [self.measurements.save(folder), _SCORES]
        self.scores.save(folder / _SCORES)
        return write_runfile(folder, self.kind, self.record, names, about={"baseline": self.baseline})

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        scores = ScoreTable.load(folder / _SCORES)
        baseline = str(file.about.get("baseline", scores.detectors[0]))
        return cls(file.record, Measurements.load(folder), scores, baseline)

    def _metric_table(self, metric: str) -> Table:
        rows = self.measurements.filter(metric=metric)
        heads = tuple(dict.fromkeys(Column(row.group, row.set) for row in rows))
        cells = {(row.detector, Column(row.group, row.set)): _number(row) for row in rows}
        learning = self.scores.context.extra.get(TRANSDUCTIVE, ())
        found = []
        for section, members in (
            ("transductive", [name for name in self.scores.detectors if name in learning]),
            ("constant", [name for name in self.scores.detectors if name not in learning]),
        ):
            grid = [[cells.get((name, column)) for column in heads] for name in members]
            best = [marked(column, higher_is_better(metric)) for column in zip(*grid)]
            found += [Row((Entry(name),), tuple(numbers), section) for name, numbers in zip(members, zip(*best))]
        return Table(
            f"stream-{metric}",
            f"{heading(metric)}, mean over streams",
            columns("detector"),
            heads,
            tuple(found),
            notes=(explanation(metric),),
            facts={"protocol": "stream", "metric": metric},
            section="track",
            sections=_SECTIONS,
        )


def _number(row: Measurement) -> Number:
    rank = None if row.rank_low is None or row.rank_high is None else (row.rank_low, row.rank_high)
    best = None if row.may_be_best is None else bool(row.may_be_best)
    number = Number(row.value, row.low, row.high, rank=rank, may_be_best=best, unit=unit_of(row.metric))
    return replace(number, population="other streams of this kind" if rank else "")
