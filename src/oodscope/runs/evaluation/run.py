"""Result: what an evaluation hands back, in memory and as a folder."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from oodscope.base.config import parse
from oodscope.base.errors import DataError, OodscopeError, StorageError
from oodscope.base.files import atomic_path, file_sha256, write_text
from oodscope.document import html
from oodscope.document.html import block
from oodscope.document.table import Table
from oodscope.protocols.arrange import pivot
from oodscope.protocols.registry import headline_metrics
from oodscope.results.gallery import Gallery
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.scoretable import ScoreTable

RECORD, _MEASUREMENTS, _SCORES = "run.json", "measurements.parquet", "scores.parquet"
_GALLERY = "gallery.safetensors"


@dataclass(frozen=True)
class Result:
    """One run: its record, its numbers, the scores they were computed from, and pictures of the hardest images.

    Parameters
    ----------
    gallery : for pages; None where no images were at hand, and in older results.

    Examples
    --------
    >>> folder_of_run = result.save(folder / "run")
    >>> oods.Result.load(folder_of_run).scores.detectors
    ['msp', 'knn']
    """

    record: RunRecord
    measurements: Measurements
    scores: ScoreTable
    gallery: Gallery | None = None

    def __post_init__(self) -> None:
        if strangers := set(self.measurements.distinct("run")) - {self.record.id}:
            raise DataError(f"the record is of run {self.record.id!r}, a measurement of {min(strangers)!r}")

    def table(self, protocol: str | None = None, metric: str | None = None) -> Table:
        """The table people publish, for one protocol (the run's first by default) and one metric (its headline)."""
        return pivot(self.measurements, protocol or self.record.protocols[0], metric)

    def _repr_html_(self) -> str:
        """For a notebook: what was run, and the first table of every protocol."""
        record = self.record
        told = f"{record.model} on {record.benchmark} {record.benchmark_version}, run {record.id}"
        shown = [
            name
            for name in record.protocols
            if self.measurements.filter(protocol=name, metric=headline_metrics(name)[0])
        ]
        tables = [part for name in shown for part in html.notebook_parts(self.table(name))]
        return block(f"<p><b>{escape(told)}</b></p>", *tables)

    def to_dataframe(self) -> pd.DataFrame:
        """The measurements, one tidy row each."""
        return self.measurements.to_dataframe()

    def save(self, folder: Path | str) -> Path:
        """Write ``run.json``, the measurements (Parquet, and CSV for people), the scores and the gallery.

        ``run.json`` comes last and holds the checksums of the others, so a folder whose writing was
        interrupted, or of which a part was copied, does not pass for a result.
        """
        folder = Path(folder)
        if (folder / RECORD).exists():
            raise StorageError(f"{folder} holds a result, and results are never overwritten; choose another folder")
        frame = self.to_dataframe()
        with atomic_path(folder / _MEASUREMENTS) as temporary:
            frame.to_parquet(temporary, compression="zstd", index=False)
        with atomic_path(folder / "measurements.csv") as temporary:
            frame.to_csv(temporary, index=False)
        self.scores.save(folder / _SCORES)
        names = [_MEASUREMENTS, _SCORES]
        if self.gallery is not None:
            self.gallery.save(folder / _GALLERY)
            names.append(_GALLERY)
        files = {name: file_sha256(folder / name) for name in names}
        content = {"record": self.record.model_dump(mode="json"), "sha256": files}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(folder / RECORD, text + "\n")
        return folder

    @classmethod
    def load(cls, folder: Path | str) -> "Result":
        """Read what ``save`` wrote."""
        folder = Path(folder)
        content = _read_json(folder / RECORD)
        record = parse(RunRecord, content["record"], str(folder / RECORD))
        for name, digest in content["sha256"].items():
            if not (folder / name).is_file():
                raise DataError(f"{folder}: {name} is missing")
            if file_sha256(folder / name) != digest:
                raise DataError(f"{folder / name}: not the file saved with this result (checksum differs)")
        gallery = Gallery.load(folder / _GALLERY) if _GALLERY in content["sha256"] else None
        return cls(record, _read_measurements(folder / _MEASUREMENTS), ScoreTable.load(folder / _SCORES), gallery)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(f"{path.parent}: no finished result here ({path.name} is missing)") from error
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(content, dict) or set(content) != {"record", "sha256"}:
        raise DataError(f"{path}: not the record of a result")
    return content


def _read_measurements(path: Path) -> Measurements:
    try:
        return Measurements.from_dataframe(pd.read_parquet(path, partitioning=None))
    except (pa.ArrowException, OodscopeError) as error:
        raise DataError(f"{path}: {error}") from error
