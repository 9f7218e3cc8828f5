"""Reported: numbers that another tool computed, as a run: shown and compared by eye, never ranked with our own."""

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError
from oodscope.base.hashing import fingerprint
from oodscope.document.number import Number
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import MEAN
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord, command_line
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile

OPENOOD = {
    "FPR@95": "fpr95_ood_positive",
    "AUROC": "auroc",
    "AUPR_IN": "aupr_in_trapezoid",
    "AUPR_OUT": "aupr_out_trapezoid",
    "ACC": "accuracy",
}
"""Columns of OpenOOD's result files, in percent. Both its rate and its areas are those of the named metrics of ours."""

PYTORCH_OOD = {
    "AUROC": "auroc",
    "AUPR-IN": "aupr_in_trapezoid",
    "AUPR-OUT": "aupr_out_trapezoid",
    "FPR95TPR": "fpr95_ood_positive",
}
"""Keys of pytorch-ood's result dictionaries, as shares."""

_GROUPS = {"nearood": ("near", MEAN), "farood": ("far", MEAN)}
_NUMBER = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*(?:(?:±|\+/-)\s*(\d+(?:\.\d+)?)\s*)?$")
NOTE = "computed by another tool and reported as it stands: no score was seen, so there are no intervals and no ranks"


class ReportedRow(StrictModel):
    """One number; ``spread`` is what stood behind a ± sign, whatever it means there."""

    detector: str
    group: str
    set: str
    metric: str
    value: float
    spread: float | None = None


class ReportedContent(StrictModel):
    """What the file of such a run holds beside its record."""

    source: str
    rows: list[ReportedRow]


@dataclass(frozen=True, eq=False)
class Reported(Run):
    """Numbers of another tool.

    Parameters
    ----------
    source : the tool and its file.
    rows : values as shares, whatever unit the file has.
    """

    kind: ClassVar[str] = "reported"

    record: RunRecord
    source: str
    rows: tuple[ReportedRow, ...]

    @property
    def measurements(self) -> Measurements:
        """Every number as a row without an interval."""
        return Measurements(
            Measurement(
                run=self.record.id,
                benchmark=self.record.benchmark,
                benchmark_version=self.record.benchmark_version,
                model=self.record.model,
                detector="" if row.metric == "accuracy" else row.detector,
                protocol=self.kind,
                set=row.set,
                group=row.group,
                metric=row.metric,
                value=row.value,
                unranked=NOTE,
            )
            for row in self.rows
        )

    def tables(self) -> Mapping[str, Table]:
        """A table per metric: detectors by sets."""
        found = {}
        for metric in dict.fromkeys(row.metric for row in self.rows):
            rows = [row for row in self.rows if row.metric == metric]
            sets = list(dict.fromkeys((row.group, row.set) for row in rows))
            values = {(row.detector, row.group, row.set): row for row in rows}
            lines = tuple(
                Row((Entry(detector),), tuple(_cell(values.get((detector, *each))) for each in sets))
                for detector in dict.fromkeys(row.detector for row in rows)
            )
            heads = tuple(Column(group, name) for group, name in sets)
            title = f"{METRICS[metric].label}, as reported by {self.source}"
            found[metric] = Table(metric, title, columns("detector"), heads, lines, notes=(f"{NOTE}.",))
        return found

    def save(self, folder: Path | str) -> Path:
        """Write ``run.json``, which holds everything."""
        content = ReportedContent(source=self.source, rows=list(self.rows))
        return write_runfile(Path(folder), self.kind, self.record, [], content.model_dump(mode="json"))

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        content = parse(ReportedContent, dict(file.about), str(folder))
        return cls(file.record, content.source, tuple(content.rows))


def _cell(row: ReportedRow | None) -> Number | Entry | None:
    if row is None:
        return None
    return (
        Number(row.value) if row.spread is None else Entry(f"{100 * row.value:.2f} ± {100 * row.spread:.2f}", row.value)
    )


def read_openood(files: Mapping[str, Path], groups: Mapping[str, str] | None = None) -> list[ReportedRow]:
    """The rows of OpenOOD's result CSVs: one file per detector, a row per set, ``nearood`` and ``farood`` means.

    Parameters
    ----------
    files : by the name of the detector.
    groups : ``near`` or ``far`` for each set; by default those above the row ``nearood`` are near, as it writes them.
    """
    rows: list[ReportedRow] = []
    for detector, path in files.items():
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                lines = [{str(k): str(v or "") for k, v in line.items()} for line in csv.DictReader(stream)]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path}: not readable ({error})") from error
        if not lines or "AUROC" not in lines[0]:
            raise DataError(f"{path}: not a result file of OpenOOD: it needs a column of sets and AUROC")
        first, order = next(iter(lines[0])), [line[next(iter(line))].strip() for line in lines]
        border = order.index("nearood") if "nearood" in order else len(order)
        for number, line in enumerate(lines):
            name = line[first].strip()
            guessed = "near" if number < border else "far"
            group, shown = _GROUPS.get(name, ((groups or {}).get(name, guessed), name))
            for column, metric in OPENOOD.items():
                if line.get(column, "").strip():
                    value, spread = _parsed(line[column], path)
                    where = ("id", "id_test") if metric == "accuracy" else (group, shown)
                    row = ReportedRow(
                        detector=detector, group=where[0], set=where[1], metric=metric, value=value, spread=spread
                    )
                    if row not in rows:  # the accuracy stands in every line
                        rows.append(row)
    return rows


def read_dictionaries(path: Path, group: str = "far") -> list[ReportedRow]:
    """The rows of pytorch-ood's result dictionaries: a JSON list of them, or the CSV of their data frame.

    ``Dataset`` and ``Detector`` name set and detector; where a dictionary lacks the latter, it is called by the file.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content: Any = json.loads(text) if path.suffix == ".json" else list(csv.DictReader(text.splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: not readable ({str(error).splitlines()[0]})") from error
    given: Iterable[Any] = content if isinstance(content, list) else [content]
    rows = []
    for each in given:
        if not isinstance(each, dict) or "AUROC" not in each:
            raise DataError(f"{path}: not result dictionaries of pytorch-ood: each needs AUROC")
        detector, name = str(each.get("Detector") or path.stem), str(each.get("Dataset") or "ood")
        for key, metric in PYTORCH_OOD.items():
            if each.get(key) not in (None, ""):
                value = float(each[key])
                if not 0 <= value <= 1:
                    raise DataError(f"{path}: {key} is {value:g}; pytorch-ood gives shares between 0 and 1")
                rows.append(ReportedRow(detector=detector, set=name, group=group, metric=metric, value=value))
    return rows


def reported(rows: list[ReportedRow], source: str, *, benchmark: str, model: str) -> Reported:
    """The rows as a run."""
    if not rows:
        raise DataError(f"{source}: holds no number that is known here")
    created = datetime.now(UTC).isoformat(timespec="seconds")
    record = RunRecord(
        id=f"reported-{fingerprint([row.model_dump() for row in rows], source)[:12]}",
        created=created,
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=benchmark,
        model=model,
        notes=[NOTE],
    )
    return Reported(record, source, tuple(rows))


def _parsed(text: str, path: Path) -> tuple[float, float | None]:
    found = _NUMBER.match(text)
    if found is None:
        raise DataError(f"{path}: {text!r} is no number, and no 'number ± number'")
    return float(found[1]) / 100, None if found[2] is None else float(found[2]) / 100
