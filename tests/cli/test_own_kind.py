"""A kind of run of another package is saved, found, printed and reported, without a template or a changed file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest

import oodscope as oods
from oodscope.document.chapter import Card, Cards, Chapter, Claims, Gallery, Picture, Prose
from oodscope.document.claim import Claim
from oodscope.document.figure import Figure, Line
from oodscope.document.number import Number
from oodscope.document.table import Column, Row, Table, columns
from oodscope.document.table import Entry as Text
from oodscope.document.trial import Entry, Trial, leaders, make_trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import RUNS
from oodscope.results.runfile import read_runfile, write_runfile
from tests.report.reading import read
from tests.report.whole_runs import judged


@dataclass(frozen=True)
class Drift(oods.Run):
    """Detectors over days of a camera."""

    kind: ClassVar[str] = "drift"

    record: RunRecord
    measurements: Measurements

    def tables(self) -> Mapping[str, Table]:
        rows = tuple(Row((Text(row.detector),), (Number(row.value),)) for row in self.measurements)
        days = tuple(Row((Text("monday"),), (Text("12", 12),)) for _ in range(1))
        return {
            "drift": Table("drift", "AUROC by detector", columns("detector"), (Column("", "AUROC"),), rows),
            "days": Table("days", "Images by day", columns("day"), columns("images"), days),
        }

    def trials(self) -> Sequence[Trial]:
        entries = [Entry(row.detector, row.tuning, Number(row.value)) for row in self.measurements]
        return [make_trial("drift_days", "camera 1", "AUROC over days", entries, higher=True)]

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        own = self.measurements.filter(detector=subject.detector)
        return [Weakness("worst day", "friday", row.value, "AUROC", "days", -row.value) for row in own]

    def chapter(self) -> Chapter:
        curve = Figure("days", "By day", "One point for each day.", (Line("knn", (0.0, 1.0), (0.5, 0.6), 0),))
        pictures = Gallery("Hardest day", (Picture(np.zeros((4, 4, 3), np.uint8), "friday, noon"),))
        blocks = (
            Prose("A camera <watched> the yard."),
            Cards((Card("days", "5", "watched"),)),
            *self.tables().values(),
            curve,
            pictures,
            Claims((Claim("rain is harder than sun", False, "61.00 against 60.00"),)),
        )
        return Chapter("Drift of camera 1", "drift", leaders(self.trials()), blocks)

    def save(self, folder: Path | str) -> Path:
        folder = Path(folder)
        return write_runfile(folder, self.kind, self.record, [self.measurements.save(folder)])

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        return cls(read_runfile(Path(folder)).record, Measurements.load(Path(folder)))


def drift(run="drift-1"):
    record = RunRecord(id=run, created="2026-01-31T12:00:00+00:00", oodscope_version="0", protocols=["drift_days"])
    shared = {"run": run, "benchmark": "yard", "benchmark_version": "1", "model": "net", "protocol": "drift_days"}
    rows = [
        Measurement(**shared, detector=name, set="days", group="days", metric="auroc", value=value)
        for name, value in (("knn", 0.8125), ("msp", 0.625))
    ]
    return Drift(record, Measurements(rows))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(RUNS, "_registered", dict(RUNS._registered))
    RUNS.register("drift", Drift)


def test_it_is_saved_and_found(tmp_path):
    drift().save(tmp_path / "runs" / "camera")
    (found,) = oods.open_runs(tmp_path / "runs")
    assert found == drift() and found.kind == "drift" and found.score_tables() == {}
    content = json.loads((tmp_path / "runs" / "camera" / "run.json").read_text())
    assert (content["kind"], content["schema"]) == ("drift", 2)


def test_a_class_that_is_no_run_is_refused():
    with pytest.raises(oods.OodscopeError, match="run 'odd' must be a subclass of Run"):
        RUNS.register("odd", dict)


def test_it_is_printed_in_every_format(oodscope, tmp_path):
    drift().save(tmp_path / "camera")
    shown = oodscope("table", tmp_path / "camera", "--format", "json")
    assert shown.status == 0, shown
    assert json.loads(shown.out)["rows"][0]["detector"] == "knn"
    assert "monday" in oodscope("table", tmp_path / "camera", "--sheet", "days").out
    for format in ("rich", "markdown", "csv", "latex", "html"):
        assert "knn" in oodscope("table", tmp_path / "camera", "--format", format).out
    wrong = oodscope("table", tmp_path / "camera", "--sheet", "dayz")
    assert wrong.status == 2 and "unknown sheet 'dayz'. Did you mean 'days'" in wrong.err
    wrong = oodscope("table", tmp_path / "camera", "--metric", "auroc")
    assert wrong.status == 1 and "the tables of a run of kind drift have no metric to choose" in wrong.err


def test_it_appears_in_the_report_by_its_chapter_trials_and_record(oodscope, tmp_path):
    drift().save(tmp_path / "runs" / "camera")
    drift("drift-2").save(tmp_path / "runs" / "other")
    judged().save(tmp_path / "runs" / "evaluated")
    outcome = oodscope("report", tmp_path / "runs", "--output", tmp_path / "report.html")
    assert outcome.status == 0, outcome
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = read(text)
    ids = [element.attributes["id"] for element in page.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids)) and {"run-drift-1", "run-drift-2", "standard-1"} <= set(ids)
    (chapter,) = [each for each in page.all("section") if each.attributes.get("id") == "run-drift-1"]
    for words in (
        "Drift of camera 1",
        "knn leads drift days (AUROC over days 81.25).",
        "A camera <watched> the yard.",
        "watched",
        "AUROC by detector",
        "81.25",
        "Images by day",
        "By day",
        "friday, noon",
        "does not hold",
        "61.00 against 60.00",
    ):
        assert words in chapter.text
    assert "&lt;watched&gt;" in text and len(chapter.all("img")) == 1
    # scorecard and verdict hold its number and link to its chapter; its record is among the others
    cards = page.all("tr", **{"data-protocol": "drift_days"})
    assert len(cards) == 2 and "81.25" in cards[0].text and "worst day" in cards[0].text
    links = {link.attributes["href"] for card in cards for link in card.all("a")}
    assert {"#run-drift-1", "#run-drift-2"} <= links and {link[1:] for link in links} <= set(ids)
    # what it knows of a detector is held against that detector wherever it leads
    knn = [card.text for card in page.all("tr") if "data-protocol" in card.attributes and "worst day" in card.text]
    assert len(knn) >= 2
    (provenance,) = [each for each in page.all("section") if each.attributes.get("id") == "provenance"]
    assert "drift-1" in provenance.text and "drift-2" in provenance.text
