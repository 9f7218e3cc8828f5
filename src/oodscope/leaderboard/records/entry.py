"""Entry: one method on one network and one benchmark, with all that is needed to check it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from oodscope.leaderboard.records.records import (
    AttackUse,
    BenchmarkUse,
    Claim,
    DetectorUse,
    Execution,
    ModelUse,
    Part,
    Publication,
    Reported,
    ScoresFile,
    Threshold,
)
from oodscope.leaderboard.records.text import Line, Link, Name, Slug, Text
from oodscope.metrics.metric import Tuning
from oodscope.results.measurement import Measurement, Measurements
from oodscope.runs.attack.run import PROTOCOL as ATTACK

SCHEMA = 1

Track = Literal["post-hoc", "training", "outlier-data", "vision-language", "transductive"]
"""What a method may use. Tracks are never ranked together.

``post-hoc``: a given network. ``training``: the network was trained for it, on ID data. ``outlier-data``: it has
learned from outliers. ``vision-language``: it has text. ``transductive``: a score depends on other test images.
"""


def _in_utc(value: str) -> str:
    if datetime.fromisoformat(value).utcoffset() != timedelta(0):
        raise ValueError("must be in UTC, such as 2026-01-31T12:00:00+00:00")
    return value


class Entry(Part):
    """What ``entry.json`` says. Nothing in it is believed that can be computed from the scores beside it.

    Parameters
    ----------
    schema_version : of this record; a reader refuses what it does not know.
    id : also the name of the folder; unique on a board, for ever.
    group : entries that differ in nothing but the seed of the training share it.
    track : what the method uses; ``detector.search.tuning`` says how its parameters were chosen.
    protocols : those the scores are judged by, each with its version.
    claims : numbers that the scores give, by the submitter's computation.
    reported : numbers that the authors printed.
    scores : missing where only printed numbers are known.
    """

    schema_version: Literal[1]
    id: Slug
    method: Name
    group: Slug | Literal[""] = ""
    submitted: Annotated[Line, AfterValidator(_in_utc)]
    track: Track
    authors: tuple[Name, ...] = ()
    paper: Publication | None = None
    code: Link = ""
    weights: Link = ""
    benchmark: BenchmarkUse
    protocols: dict[Name, int]
    model: ModelUse = ModelUse()
    detector: DetectorUse = DetectorUse()
    execution: Execution = Execution()
    thresholds: tuple[Threshold, ...] = ()
    attack: AttackUse | None = None
    claims: tuple[Claim, ...] = ()
    reported: tuple[Reported, ...] = ()
    scores: ScoresFile | None = None
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.scores is None and not self.reported:
            raise ValueError("an entry has scores, or at least one reported number")
        if self.scores is not None and not self.protocols:
            raise ValueError("an entry with scores names at least one protocol")
        if self.scores is not None and (set(self.protocols) == {ATTACK}) != (self.attack is not None):
            raise ValueError(f"an attack, and nothing else, is judged by the protocol {ATTACK!r}")
        return self

    @property
    def tuning(self) -> Tuning:
        """The tuning track."""
        return self.detector.search.tuning

    def reported_measurements(self) -> Measurements:
        """The printed numbers as rows, for tables that show them in grey."""
        return Measurements(self._reported_rows())

    def _reported_rows(self) -> Iterator[Measurement]:
        shared: dict[str, Any] = {
            "run": self.id,
            "benchmark": self.benchmark.name,
            "benchmark_version": self.benchmark.version,
            "model": self.model.name,
            "params": self.detector.params,
            "tuning": self.tuning,
        }
        for each in self.reported:
            detector = "" if each.metric == "accuracy" else self.method
            place = {name: getattr(each, name) for name in ("protocol", "metric", "group", "set")}
            yield Measurement(**shared, **place, detector=detector, value=each.value)
