"""The tables of a study of generated sets: detectors by network and set, and calibration by network and set."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult

from oodscope.document.sheet import Entry, Sheet
from oodscope.document.wording import CLOSE, heading, percent
from oodscope.metrics.catalog import METRICS
from oodscope.results.measurement import Measurement, overlap
from oodscope.runs.generated.run import WORST, GeneratedStudy

CIRCULAR = "↻"
"""Marks a network that had a part in making the generated images."""


@dataclass(frozen=True)
class StudyTable:
    """One metric.

    Parameters
    ----------
    columns : sets, generated ones first.
    rows : network, detector (empty where the classifier itself is measured) and one measurement per column.
    circular : networks to be marked.
    """

    metric: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Measurement | None, ...]], ...]
    circular: tuple[str, ...]

    def csv(self) -> str:
        """Fractions in full precision with their intervals, for programs."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        ends = [f"{name}{end}" for name in self.columns for end in ("", " low", " high")]
        writer.writerow(["network", "made the images", "detector", *ends])
        for network, detector, cells in self.rows:
            numbers = [n for cell in cells for n in ((cell.value, cell.low, cell.high) if cell else (None,) * 3)]
            writer.writerow([network, network in self.circular, detector, *numbers])
        return stream.getvalue()

    def render(self, format: str) -> str:
        """The table as ``csv``, ``markdown`` or ``latex``."""
        return self.csv() if format == "csv" else self.sheet().render(format)

    def markdown(self) -> str:
        """In percent, for a README."""
        return self.sheet().markdown()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.sheet()

    def sheet(self) -> Sheet:
        """In percent, for people: the best of a column in bold, those whose interval overlaps its marked."""
        columns = list(zip(*(cells for _, _, cells in self.rows)))
        best = [self._best(column) for column in columns]
        rows = []
        for network, detector, cells in self.rows:
            mark = f" {CIRCULAR}" if network in self.circular else ""
            entries = [_entry(cell, lead) for cell, lead in zip(cells, best)]
            rows.append((Entry(network + mark), Entry(detector or "–"), *entries))
        notes = [f"In percent. Bold: best of its column. {CLOSE}: its interval overlaps that of the best."]
        if self.circular:
            notes.append(f"{CIRCULAR}: the network had a part in making the generated images.")
        return Sheet(self.metric, self.title, ("network", "detector", *self.columns), tuple(rows), 2, tuple(notes))

    @property
    def title(self) -> str:
        """What is measured, with its direction."""
        if self.metric in METRICS:
            return f"{heading(self.metric)} on generated and real sets"
        return f"{self.metric} {'↑' if self.metric == 'accuracy' else '↓'} of the classifier"

    def _best(self, column: Sequence[Measurement | None]) -> Measurement | None:
        found = [cell for cell in column if cell is not None]
        if len(found) < 2:
            return None
        higher = METRICS[self.metric].higher_is_better if self.metric in METRICS else self.metric == "accuracy"
        return (max if higher else min)(found, key=lambda cell: cell.value)


def _entry(cell: Measurement | None, best: Measurement | None) -> Entry:
    if cell is None:
        return Entry("–", "")
    leads = best is not None and cell.value == best.value
    close = best is not None and not leads and overlap(cell, best)
    return Entry(percent(cell.value) + (CLOSE if close else ""), cell.value, leads)


def separation_table(study: GeneratedStudy, metric: str = "auroc") -> StudyTable:
    """A ranking metric of every detector, on generated and on real sets of foreign images."""
    found = study.separation(metric)
    columns = (*study.sanity.near(), *study.real)
    rows = dict.fromkeys((network, detector) for network, detector, _ in found)
    cells = tuple((*row, tuple(found.get((*row, name)) for name in columns)) for row in rows)
    return StudyTable(metric, columns, cells, tuple(study.circular))


def calibration_table(study: GeneratedStudy, metric: str = "ece15") -> StudyTable:
    """A calibration metric of every network: on ID test, on shifted sets, at worst and on each real csid set."""
    found = study.calibration(metric)
    sets = list(dict.fromkeys(name for _, name in found))
    first = [each.name for each in study.sanity.sets if each.role == "id_test"]
    columns = (*first, *study.sanity.shifted(), WORST, *sets)
    ordered = tuple(name for name in dict.fromkeys(columns) if name in sets)
    cells = tuple((each, "", tuple(found.get((each, name)) for name in ordered)) for each in study.networks)
    return StudyTable(metric, ordered, cells, tuple(study.circular))
