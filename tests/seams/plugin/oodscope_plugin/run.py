"""A kind of run: how many images each set of an evaluation has, and what share of them scores above its median."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from oodscope import Run
from oodscope.base.files import write_text
from oodscope.document.chapter import Card, Cards, Chapter
from oodscope.document.number import Number
from oodscope.document.table import Entry, Row, Table, columns
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile


@dataclass(frozen=True)
class Census(Run):
    """What share of each set scores above the median of all images, for one detector."""

    kind: ClassVar[str] = "census"

    record: RunRecord
    detector: str
    shares: dict[str, float]

    @classmethod
    def of(cls, result, detector):
        table = result.scores
        median = np.median(table.scores(detector))
        shares = {name: float((table.scores(detector, set=name) > median).mean()) for name in table.sets()}
        record = result.record.model_copy(update={"id": f"census-{result.record.id}", "protocols": []})
        return cls(record, detector, shares)

    @property
    def measurements(self):
        told = {"run": self.record.id, "benchmark": self.record.benchmark, "model": self.record.model}
        told["benchmark_version"] = self.record.benchmark_version
        return Measurements(
            Measurement(**told, detector=self.detector, protocol="census", set=name, group="all", metric="share_above",
                        value=share)
            for name, share in self.shares.items()
        )  # fmt: skip

    def tables(self):
        rows = tuple(Row((Entry(name),), (Number(share),)) for name, share in self.shares.items())
        return {"shares": Table("shares", "Shares above the median", columns("set"), columns(self.detector), rows)}

    def chapter(self):
        cards = Cards((Card("Sets", str(len(self.shares)), "counted by a plugin"),))
        return Chapter("Census", self.kind, f"{len(self.shares)} sets.", (cards, *self.tables().values()))

    def save(self, folder):
        folder = Path(folder)
        write_text(folder / "census.json", json.dumps(self.shares))
        return write_runfile(folder, self.kind, self.record, ["census.json"], {"detector": self.detector})

    @classmethod
    def load(cls, folder):
        file = expect_kind(read_runfile(Path(folder)), Path(folder), cls.kind)
        shares = json.loads((Path(folder) / "census.json").read_text(encoding="utf-8"))
        return cls(file.record, str(file.about["detector"]), shares)
