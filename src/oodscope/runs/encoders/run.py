"""Scorecard: image encoders side by side, with words, with a head or without one."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError
from oodscope.document.chapter import Chapter, Prose
from oodscope.document.number import Number
from oodscope.document.table import Cell, Column, Entry, Row, Table, columns
from oodscope.document.wording import heading, shown
from oodscope.metrics.metric import MEAN
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord, joint_record
from oodscope.results.run import Run
from oodscope.results.runfile import RECORD, expect_kind, read_runfile, write_runfile
from oodscope.runs.encoders.order import Order, find_orders, find_worded
from oodscope.runs.evaluation.run import Result
from oodscope.runs.models.run import STUDIED, StudyModel

Head = Literal["words", "linear", "none"]
"""How an encoder classifies: by the words for the classes, by a layer fitted to images, or not at all."""

ERROR = "der95_val_correct"

_PLACES = (
    (Column("AUROC ↑", "near"), ("standard", "near", "auroc")),
    (Column("AUROC ↑", "far"), ("standard", "far", "auroc")),
    (Column("full-spectrum AUROC ↑", "near", words="near, full spectrum"), ("full_spectrum", "near", "auroc")),
    (Column("full-spectrum AUROC ↑", "far", words="far, full spectrum"), ("full_spectrum", "far", "auroc")),
    (Column(heading(ERROR), "all sets", words="DER95"), (STUDIED, "all", ERROR)),
)
"""The columns of the scorecard, and the protocol, group and metric of each: means over the sets of the group."""


class EncoderRecord(StrictModel):
    """What a scorecard knows of an encoder beside its numbers.

    Parameters
    ----------
    model : its name and labels.
    run : the evaluation that its numbers come from.
    head : how it classifies.
    words : digest of the class names and sentences of a head made of words; empty for others.
    parameters : of the network; ``None`` if not known.
    skipped : detectors that do not apply to it, each with the reason.
    """

    model: StudyModel
    run: str
    head: Head
    words: str = ""
    parameters: int | None = None
    skipped: dict[str, str] = {}


@dataclass(frozen=True)
class Encoder:
    """An encoder and what was measured with it."""

    about: EncoderRecord
    measurements: Measurements

    @property
    def name(self) -> str:
        """How tables call it."""
        return self.about.model.name

    def row(self, detector: str, protocol: str, group: str, metric: str) -> Measurement | None:
        """The mean over a group of sets; None where it was not measured."""
        found = self.measurements.filter(detector=detector, protocol=protocol, group=group, metric=metric, set=MEAN)
        return found[0] if found else None


class Scorecard(Run):
    """Image encoders on one benchmark, each under the detectors that fit it.

    It shows the measurements of evaluations that are runs of their own, and keeps a copy of them. Encoders are ranked
    under one detector at a time, by paired tests on the same images. A score that reads class names depends on how the
    classes are called; encoders that classify by different words are ranked apart under such a detector.

    Parameters
    ----------
    encoders : each with its measurements.
    orders : their ranks, see :func:`find_orders`.
    worded : the detectors whose scores depend on how the classes are called.
    notes : what a reader should know, such as orders that could not be had.
    record : of a scorecard that was saved; a new one unless given.
    """

    kind: ClassVar[str] = "encoders"

    def __init__(
        self,
        encoders: Iterable[Encoder],
        orders: Iterable[Order] = (),
        worded: Iterable[str] = (),
        notes: Iterable[str] = (),
        record: RunRecord | None = None,
    ) -> None:
        self.encoders, self.orders = tuple(encoders), tuple(orders)
        self.worded, self.notes = tuple(worded), tuple(notes)
        self._saved = record
        check_names([each.name for each in self.encoders])

    @cached_property
    def record(self) -> RunRecord:
        """The encoders together; ``parts`` names the evaluation of each."""
        if self._saved is not None:
            return self._saved
        rows, about = self.measurements, [each.about for each in self.encoders]
        members, names = [each.model_dump() for each in about], [each.name for each in self.encoders]
        record = joint_record(self.kind, members, names, rows, protocols=rows.distinct("protocol"))
        words = ", ".join(dict.fromkeys(each.words for each in about if each.words))
        return record.model_copy(update={"words": words, "notes": list(self.notes)})

    @cached_property
    def measurements(self) -> Measurements:
        """Those of every encoder."""
        return Measurements(row for each in self.encoders for row in each.measurements)

    @property
    def detectors(self) -> list[str]:
        """Every detector that fits some encoder, in order of appearance."""
        found = (name for each in self.encoders for name in each.measurements.distinct("detector") if name)
        return list(dict.fromkeys(found))

    def tables(self) -> Mapping[str, Table]:
        """``encoders``: every number; ``heads``: how each encoder classifies and what does not fit it."""
        return {"encoders": self._scores(), "heads": self._heads()}

    def verdict(self) -> str:
        """What may be said of the order of encoders on near OOD, detector by detector."""
        near = [str(each) for each in self.orders if each.group == "near"]
        return " ".join(near) or "No two encoders share a detector and near-OOD sets: there is no order."

    def chapter(self) -> Chapter:
        """The order in words, and both tables."""
        title = f"{len(self.encoders)} encoders on {self.record.benchmark}"
        far = " ".join(str(each) for each in self.orders if each.group != "near")
        prose = [Prose(text) for text in (*self.notes, far) if text]
        return Chapter(title, self.kind, self.verdict(), (*prose, *self.tables().values()))

    def save(self, folder: Path | str) -> Path:
        """Write the measurements of all encoders and ``run.json``, which comes last."""
        folder = Path(folder)
        about: dict[str, Any] = {
            "encoders": [each.about.model_dump(mode="json") for each in self.encoders],
            "orders": [asdict(each) for each in self.orders],
            "worded": list(self.worded),
        }
        name = self.measurements.save(folder)
        return write_runfile(folder, self.kind, self.record, [name], about)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        rows = Measurements.load(folder)
        known = [parse(EncoderRecord, each, str(folder / RECORD)) for each in file.about["encoders"]]
        orders = [
            Order(**{**each, "places": {name: (low, high) for name, (low, high) in each["places"].items()}})
            for each in file.about["orders"]
        ]
        encoders = [Encoder(each, rows.filter(run=each.run)) for each in known]
        return cls(encoders, orders, file.about["worded"], file.record.notes, file.record)

    def _scores(self) -> Table:
        """A section for each detector: encoders of different words never share one where it reads words."""
        rows, sections = [], {}
        for detector in self.detectors:
            for encoder in self.encoders:
                if detector not in encoder.measurements.distinct("detector"):
                    continue
                words = self._apart(detector, encoder)
                key = f"{detector} ({words[:8]})" if words else detector
                sections[key] = f"{detector}, words {words}" if words else detector
                rows.append(Row((Entry(encoder.name),), tuple(self._cells(encoder, detector)), key))
        rows.sort(key=lambda row: list(sections).index(row.section))
        return Table(
            "encoders",
            f"Image encoders on {self.record.benchmark}",
            columns("encoder"),
            (*(column for column, _ in _PLACES), *columns("accuracy", "µs/image", "passes")),
            tuple(rows),
            (
                "Means over sets in percent, with 95 % intervals for other images. Ranks are those of near-OOD AUROC "
                "among encoders of one section; µs/image is what the detector adds to the pass through the encoder.",
            ),
            section="detector",
            sections=sections,
        )

    def _cells(self, encoder: Encoder, detector: str) -> Iterable[Cell]:
        for _, (protocol, group, metric) in _PLACES:
            row = encoder.row(detector, protocol, group, metric)
            yield None if row is None else _number(row, self._places(encoder, detector, protocol, group))
        accuracy = encoder.measurements.filter(metric="accuracy", group="id", protocol="standard")
        yield _number(accuracy[0]) if accuracy else None
        one = encoder.measurements.filter(detector=detector)[0]
        cost = one.microseconds_per_image
        yield None if cost is None else Entry(shown(cost, "number"), cost)
        yield None if one.passes is None else Entry(str(one.passes), one.passes)

    def _places(self, encoder: Encoder, detector: str, protocol: str, group: str) -> tuple[int, int] | None:
        found = (
            each.places[encoder.name]
            for each in self.orders
            if (each.detector, each.group) == (detector, group) and encoder.name in each.places
        )
        return next(found, None) if protocol == "standard" else None

    def _apart(self, detector: str, encoder: Encoder) -> str:
        """The words of the section that it stands in; empty where all encoders of the detector share one."""
        having = [each for each in self.encoders if detector in each.measurements.distinct("detector")]
        digests = {each.about.words for each in having} - {""}
        return encoder.about.words if detector in self.worded and len(digests) > 1 else ""

    def _heads(self) -> Table:
        rows = []
        for each in self.encoders:
            about, count = each.about, each.about.parameters
            size = Entry("not known") if count is None else Entry(f"{count / 1e6:.3g}", count)
            skipped = ", ".join(about.skipped) or "none"
            rows.append(Row((Entry(each.name),), (Entry(about.head), Entry(about.words or "–"), size, Entry(skipped))))
        return Table(
            "heads",
            "How the encoders classify",
            columns("encoder"),
            columns("head", "words", "million parameters", "detectors that do not apply"),
            tuple(rows),
            ("words: digest of class names and sentences; scores that read them compare only where it agrees.",),
        )


def scorecard_of(runs: Iterable[tuple[StudyModel, Result]]) -> Scorecard:
    """The scorecard of evaluations of several encoders on one benchmark, those of their scores compared."""
    found = list(runs)
    encoders = [Encoder(_about(model, result), result.measurements) for model, result in found]
    check_names([each.name for each in encoders])
    results = {model.name: result for model, result in found}
    worded = find_worded(results)
    orders, notes = find_orders(results, worded)
    return Scorecard(encoders, orders, worded, notes)


def check_names(names: list[str]) -> None:
    """Refuse a scorecard of nothing, and two encoders of one name."""
    if not names:
        raise DataError("a scorecard needs at least one encoder")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two encoders of the scorecard are called {name!r}; give each its own name")


def _about(model: StudyModel, result: Result) -> EncoderRecord:
    record = result.record
    classified = bool(result.measurements.filter(metric="accuracy"))
    return EncoderRecord(
        model=model,
        run=record.id,
        head="words" if record.words else "linear" if classified else "none",
        words=record.words,
        parameters=record.parameters,
        skipped=dict(record.skipped),
    )


def _number(row: Measurement, rank: tuple[int, int] | None = None) -> Number:
    return Number(row.value, row.low, row.high, rank=rank, exposure=row.exposure)
