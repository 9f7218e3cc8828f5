"""The tables of a study of generated sets: detectors by network and set, and calibration by network and set."""

import csv
import io
from dataclasses import dataclass

from oodscope.results.generated import WORST, GeneratedStudy
from oodscope.results.measurement import Measurement
from oodscope.results.plaintext import escaped
from oodscope.results.wording import percent

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

    def markdown(self) -> str:
        """In percent, for a README."""
        lines = [["network", "detector", *map(escaped, self.columns)], ["---", "---", *["---:"] * len(self.columns)]]
        for network, detector, cells in self.rows:
            mark = f" {CIRCULAR}" if network in self.circular else ""
            numbers = ["–" if cell is None else percent(cell.value) for cell in cells]
            lines.append([escaped(network) + mark, escaped(detector) or "–", *numbers])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


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
