"""Study: the same evaluation of many models, side by side."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from pydantic import Field

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError, UnknownNameError
from oodscope.document.chapter import Chapter
from oodscope.document.number import Number
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.document.wording import explanation, heading, percent
from oodscope.metrics.metric import MEAN
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord, joint_record
from oodscope.results.run import Run, choose_table
from oodscope.results.runfile import RECORD, expect_kind, read_runfile, write_runfile
from oodscope.runs.evaluation.run import Result

STUDIED = "human_centric"
"""The protocol whose numbers a study of models shows."""

METRICS = ("der99_val_correct", "der95_val_correct", "der99_train_correct", "der95_train_correct", "augrc")
"""The columns of the table: under the headline rule, under the rule of the paper, and without a threshold."""


RATES = ("frr95_val_correct", "far95_val_correct", "der95_val_correct")
"""What DER at another accuracy is made of, and DER itself."""

_SUMMARY = ("der95_val_correct", "der95_train_correct", "augrc")
"""What the summary shows: the first that every model has."""


class StudyModel(StrictModel):
    """What a study says of a model, beside how to make it.

    Parameters
    ----------
    name : how tables and figures call it; no two alike.
    family : architectures that differ in size only (ResNet, ViT); colours the points of a figure.
    strategy : how it was trained, where a study compares that (AugMix, AutoAugment).
    distilled_from : the model of this study that it is compared with: the same network trained without a teacher.
    perturbation : the radius of the adversarial training, 0 for training without one; None where that does not apply.
    """

    name: str = Field(min_length=1)
    family: str = ""
    strategy: str = ""
    distilled_from: str = ""
    perturbation: float | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class StudyMember:
    """A model and what was measured with it."""

    model: StudyModel
    measurements: Measurements


class Study(Run):
    """Many models under one protocol.

    It shows the measurements of evaluations that are runs of their own, and keeps a copy of them; their scores and
    trials are theirs. So a study may be saved again over an older one.

    Parameters
    ----------
    members : every model with its measurements, those of the studied metrics among them.
    record : of a study that was saved; a new one unless given.
    """

    kind: ClassVar[str] = "models"

    def __init__(self, members: Iterable[StudyMember], record: RunRecord | None = None) -> None:
        self.members = tuple(members)
        self._saved = record
        names = [member.model.name for member in self.members]
        if not names:
            raise DataError("a study needs at least one model")
        for name in names:
            if names.count(name) > 1:
                raise DataError(f"two models of the study are called {name!r}; give each its own name")
        for member in self.members:
            plain = member.model.distilled_from
            if plain and plain not in names:
                raise DataError(f"{member.model.name}: distilled_from {plain!r} is not one of the study's models")

    @cached_property
    def record(self) -> RunRecord:
        """The models together; ``parts`` names the evaluation of each."""
        if self._saved is not None:
            return self._saved
        members = [member.model for member in self.members]
        about, names = [model.model_dump() for model in members], [model.name for model in members]
        return joint_record(self.kind, about, names, self.measurements, protocols=[STUDIED])

    @cached_property
    def measurements(self) -> Measurements:
        """Those of every model."""
        return Measurements(row for member in self.members for row in member.measurements)

    @cached_property
    def _everywhere(self) -> list[str]:
        """Those of ``METRICS`` that every model has; without ``id_val`` there is no val_correct."""
        measured = [set(_of_protocol(member).distinct("metric")) for member in self.members]
        return [metric for metric in METRICS if all(metric in each for each in measured)]

    @property
    def detectors(self) -> list[str]:
        """The detectors that were measured with every model, in order of appearance."""
        measured = [_of_protocol(member).distinct("detector") for member in self.members]
        return [name for name in measured[0] if name and all(name in each for each in measured)]

    def accuracy(self, model: str) -> float:
        """The accuracy of a model on ``id_test``."""
        (row,) = _of_protocol(self._member(model)).filter(metric="accuracy", group="id")[:1]
        return row.value

    def value(self, model: str, detector: str, metric: str, group: str = "all") -> float:
        """The mean of a metric over a group of sets, for one model and detector."""
        rows = _of_protocol(self._member(model)).filter(detector=detector, metric=metric, group=group, set=MEAN)
        if len(rows) != 1:
            raise DataError(
                f"{model}, {detector}: {len(rows)} values of {metric} over {group} sets, where one is needed"
            )
        return rows[0].value

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each model, detector and set, with a column for each of ``METRICS``."""
        rows = []
        for member in self.members:
            found: dict[tuple[str, str, str], dict[str, float]] = {}
            for row in _detected(member):
                found.setdefault((row.detector, row.group, row.set), {})[row.metric] = row.value
            columns = {"model": member.model.name, **member.model.model_dump(exclude={"name"})}
            columns["accuracy"] = self.accuracy(member.model.name)
            rows += [
                {**columns, "detector": detector, "group": group, "set": name, **values}
                for (detector, group, name), values in found.items()
            ]
        return pd.DataFrame(rows)

    def tables(self) -> Mapping[str, Table]:
        """``study``: error rates on each set; ``summary``: one number for each model and detector; ``matched``."""
        return {each.name: each for each in (self._rates(), self.summary(), *self._matched_tables())}

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """One of both tables; a metric is that of the summary."""
        if metric is None:
            return choose_table(self.tables(), name)
        if metric not in METRICS:
            raise UnknownNameError("metric", metric, METRICS, f"A study shows: {', '.join(METRICS)}")
        return choose_table({"summary": self.summary(metric)}, name)

    def chapter(self) -> Chapter:
        """Both tables, and the error rate of every detector against the accuracy of the models."""
        from oodscope.runs.models.figures import der_against_accuracy  # which are drawn from studies

        # the rule of the paper, and the one at which detectors reject the same share of correct images
        shown = [metric for metric in ("der99_train_correct", "der99_val_correct") if metric in self._everywhere]
        figures = (der_against_accuracy(self, name, metric) for name in self.detectors for metric in shown)
        title = f"{len(self.members)} models on {self.record.benchmark}"
        return Chapter(
            title, self.kind, self.verdict(), (self.summary(), *self._matched_tables(), *figures, self._rates())
        )

    def verdict(self) -> str:
        """Which detector errs least, and whether that holds for other networks."""
        from oodscope.runs.models.verdict import models_verdict  # with its test, which few ask for

        metric = next(name for name in _SUMMARY if name in self._everywhere)
        names = [member.model.name for member in self.members]
        values = np.array([[self.value(name, detector, metric) for detector in self.detectors] for name in names])
        return models_verdict(values, self.detectors, metric) if self.detectors else ""

    def save(self, folder: Path | str) -> Path:
        """Write the measurements of all models and ``run.json``, which comes last."""
        folder = Path(folder)
        models = [
            {**each.model.model_dump(mode="json"), "run": each.measurements[0].run if each.measurements else ""}
            for each in self.members
        ]
        name = self.measurements.save(folder)
        return write_runfile(folder, self.kind, self.record, [name], {"models": models})

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        rows, members = Measurements.load(folder), []
        for entry in file.about["models"]:
            labels = {key: value for key, value in entry.items() if key != "run"}
            model = parse(StudyModel, labels, str(folder / RECORD))
            members.append(StudyMember(model, rows.filter(run=entry["run"])))
        return cls(members, file.record)

    def _rates(self) -> Table:
        """The table of the paper: rows of models and detectors, DER99 and DER95 on each set and group mean."""
        measured = [(member.model.name, _detected(member)) for member in self.members]
        sets = dict.fromkeys((row.group, row.set) for _, rows in measured for row in rows)
        rule = "val_correct" if METRICS[0] in self._everywhere else "train_correct"
        rates = [metric for metric in self._everywhere if metric.endswith(rule)]
        places = [(metric, *each) for metric in rates for each in sets]
        rows = []
        for name, own in measured:
            found = {(row.detector, row.metric, row.group, row.set): row for row in own}
            for detector in own.distinct("detector"):
                cells = tuple(_number(found.get((detector, *place))) for place in places)
                rows.append(Row((*self._labels(name), Entry(detector)), cells))
        return Table(
            "study",
            "Detection error rates of many models",
            columns("model", "accuracy", "detector"),
            tuple(_column(*place) for place in places),
            tuple(rows),
            (f"In percent, threshold {rule}; lower is better.",),
        )

    def summary(self, metric: str | None = None) -> Table:
        """One number for each model and detector: the mean over all sets."""
        metric = metric or next(name for name in _SUMMARY if name in self._everywhere)
        rows = []
        for name in (member.model.name for member in self.members):
            values = [self.value(name, detector, metric) for detector in self.detectors]
            rows.append(Row(self._labels(name), tuple(Entry(percent(value), value) for value in values)))
        return Table(
            "summary",
            f"{heading(metric)}, mean over all sets",
            columns("model", "accuracy"),
            columns(*self.detectors),
            tuple(rows),
            (explanation(metric),),
        )

    def matched(self) -> Table:
        r"""DER on ``id_test`` if all models were right equally often, :math:`a\,\mathrm{FRR} + (1 - a)\,\mathrm{FAR}`.

        A model that is right more often has fewer images to reject, so its DER is lower whatever its scores are worth.
        With a, the mean accuracy of the models, in the place of each one's own, what is left is the scores. On OOD sets
        DER is FAR and knows no accuracy.
        """
        names = [member.model.name for member in self.members]
        common = sum(map(self.accuracy, names)) / len(names)
        rates = [[[self._on_id_test(name, each, kind) for kind in RATES] for each in self.detectors] for name in names]
        values = [[common * frr + (1.0 - common) * far for frr, far, _ in own] for own in rates]
        spread, left = (
            [max(column) - min(column) for column in zip(*table)]
            for table in ([[der for _, _, der in own] for own in rates], values)
        )
        rows = [
            Row(self._labels(name), tuple(Entry(percent(value), value) for value in own))
            for name, own in zip(names, values)
        ]
        said = "; ".join(
            f"{name} {100 * before:.1f} as they are, {100 * after:.1f} at one accuracy"
            for name, before, after in zip(self.detectors, spread, left)
        )
        return Table(
            "matched",
            f"DER95 on id_test at the mean accuracy of the models, {percent(common)} %",
            columns("model", "accuracy"),
            columns(*self.detectors),
            tuple(rows),
            (f"In percent, threshold val_correct; lower is better. Points between the models: {said}.",),
        )

    def _matched_tables(self) -> list[Table]:
        """The table at one accuracy, where there is more than one model and every rate was measured."""
        measured = [set(_of_protocol(member).filter(set="id_test").distinct("metric")) for member in self.members]
        there = len(self.members) > 1 and all(set(RATES) <= each for each in measured)
        return [self.matched()] if there else []

    def _on_id_test(self, model: str, detector: str, metric: str) -> float:
        (row,) = _of_protocol(self._member(model)).filter(detector=detector, metric=metric, set="id_test")
        return row.value

    def _labels(self, name: str) -> tuple[Entry, Entry]:
        accuracy = self.accuracy(name)
        return Entry(name), Entry(percent(accuracy), accuracy)

    def _member(self, name: str) -> StudyMember:
        (member,) = (each for each in self.members if each.model.name == name)
        return member


def study_of(results: Iterable[Result]) -> Study:
    """The study that several runs make, one model each.

    Names and labels are those that the runs were recorded with. A run without them is called by its model (and by its
    recipe and run, where that is not enough), belongs to the family that the letters of that name say (``resnet50``:
    ``resnet``), and its recipe is its strategy.
    """
    members = [StudyMember(_model(result), result.measurements) for result in results]
    names = [member.model.name for member in members]
    renamed = [
        replace(member, model=member.model.model_copy(update={"name": f"{member.model.name} ({_run(member)})"}))
        if names.count(member.model.name) > 1
        else member
        for member in members
    ]
    return Study(renamed)


def _model(result: Result) -> StudyModel:
    record = result.record
    if record.labels:
        return parse(StudyModel, {"name": record.model, **record.labels}, f"labels of run {record.id}")
    recipe = next((row.recipe for row in result.measurements), "")
    letters = re.match(r"[^\W\d_]*", record.model)
    return StudyModel(name=record.model, family=letters.group() if letters else "", strategy=recipe)


def _run(member: StudyMember) -> str:
    return member.measurements[0].run if member.measurements else "no measurements"


def _of_protocol(member: StudyMember) -> Measurements:
    rows = member.measurements.filter(protocol=STUDIED)
    if not rows:
        raise DataError(f"{member.model.name}: nothing was measured under {STUDIED}, which a study shows")
    return rows


def _detected(member: StudyMember) -> Measurements:
    """The rows of detectors that a study shows."""
    return Measurements(row for row in _of_protocol(member) if row.detector and row.metric in METRICS)


def _column(metric: str, group: str, name: str) -> Column:
    head = metric.partition("_")[0].upper()
    words = Column(group, name).words
    return Column(f"{head} ↓", words, f"{metric} {group}/{name}", f"{words} {head}")


def _number(row: Measurement | None) -> Number | None:
    return None if row is None else Number(row.value, row.low, row.high)
