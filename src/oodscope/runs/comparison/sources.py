"""Where the values of a comparison and their joint noise come from, for rankings and for decisions to reject."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import AUROC
from oodscope.metrics.comparison.functionals import DRAWS, draw_weights, evaluate, weigh_sets
from oodscope.metrics.comparison.influence import (
    Estimates,
    SetUnits,
    class_keys,
    from_replicates,
    half_a_failure,
    join_sets,
    noise_freedom,
    placed_images,
    refusal,
)
from oodscope.metrics.comparison.rates import is_rate
from oodscope.metrics.interval import REPLICATES
from oodscope.metrics.metric import Metric, Population, columns_of
from oodscope.metrics.rejection.rejection import Decisions, Rejection
from oodscope.metrics.rejection.selective import Acceptance
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.base import Protocol
from oodscope.protocols.human_centric.sets import LabelledSet, labelled_sets, rows_of
from oodscope.protocols.ranking import resample
from oodscope.protocols.separation import Separation, separate
from oodscope.protocols.statements import Statements, units_of
from oodscope.results.scoretable import ScoreTable

_HALVINGS, _HALF_DRAWS = 2, 200
"""Ways to halve the images, and replicates of each half, for how well the noise itself is known."""


class Scored(NamedTuple):
    """One detector of one run, under the name that a comparison calls it by. All tables hold the same rows."""

    label: str
    table: ScoreTable
    detector: str


class Source(ABC):
    """The detectors of a comparison under one metric."""

    @property
    @abstractmethod
    def groups(self) -> Mapping[str, Sequence[str]]:
        """The sets of each group that occurs."""

    @abstractmethod
    def images(self, names: Sequence[str]) -> Estimates:
        """The mean over sets, for *other images of these classes*."""

    @abstractmethod
    def class_units(self) -> Mapping[str, SetUnits]:
        """The contributions to a statement about *other OOD classes*, set by set."""

    def classes(self, names: Sequence[str]) -> Estimates:
        """The mean over sets, for *other OOD classes*."""
        return join_sets([self.class_units()[name] for name in names])

    @abstractmethod
    def refusal(self, names: Sequence[str]) -> str:
        """Why nothing can be said of other OOD classes; empty where something can."""

    @abstractmethod
    def counts(self, names: Sequence[str]) -> tuple[int, int, int]:
        """ID images, OOD images, and sampled OOD classes that a column rests on."""


@dataclass(frozen=True)
class RankingSource(Source):
    """Metrics of ID against OOD images."""

    scored: Sequence[Scored]
    protocol: Protocol
    metric: Metric
    seed: int

    @cached_property
    def separations(self) -> dict[str, Separation]:
        """The scores of each detector."""
        tables = {id(each.table): each.table for each in self.scored}
        separated = {
            key: separate(table, self.protocol.negatives, self.protocol.groups) for key, table in tables.items()
        }
        return {each.label: separated[id(each.table)][each.detector] for each in self.scored}

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return self._any.groups

    @property
    def _any(self) -> Separation:
        return next(iter(self.separations.values()))

    @cached_property
    def statements(self) -> Statements:
        """What may be said of them."""
        return Statements(self.separations, self.metric, self.seed)

    def images(self, names: Sequence[str]) -> Estimates:
        if self.metric.name == AUROC.name:
            return placed_images([each.placements(names) for each in self.separations.values()])
        if is_rate(self.metric):
            return join_sets([self._image_units[name] for name in names], half_a_failure(self._any.placements(names)))
        values = np.array([each.point(self.metric.name, names) for each in self._draws.values()])
        replicates = self._stacked(self._draws, names)
        return from_replicates(values, replicates, freedom=self._freedom(names))

    def classes(self, names: Sequence[str]) -> Estimates:
        found = super().classes(names)
        if self.metric.name == AUROC.name or is_rate(self.metric):
            return found
        # images are resampled, not counted: how well their noise is known is no matter of how many resamples there are
        most = self._freedom(names)
        parts = [
            part if part.what.startswith("classes") else replace(part, freedom=min(part.freedom, most), resampled=True)
            for part in found.parts
        ]
        return replace(found, parts=tuple(parts))

    @cached_property
    def _image_units(self) -> Mapping[str, SetUnits]:
        return units_of(self.separations, self.metric, {}, self.seed)

    def _freedom(self, names: Sequence[str]) -> float:
        halves = [(self._stacked(first, names), self._stacked(second, names)) for first, second in self._halves]
        return noise_freedom(halves, REPLICATES["full"])

    def _stacked(self, draws: Mapping[str, Bootstrap], names: Sequence[str]) -> FloatArray:
        """``[replicate, detector]`` of the mean over sets."""
        return np.stack([each.replicates(self.metric.name, names) for each in draws.values()], axis=1)

    @cached_property
    def _draws(self) -> Mapping[str, Bootstrap]:
        return resample(self.separations, [self.metric], seed=self.seed)

    @cached_property
    def _halves(self) -> Sequence[tuple[Mapping[str, Bootstrap], Mapping[str, Bootstrap]]]:
        """The same of two halves of the images, for how well the noise itself is known."""
        found: list[tuple[Mapping[str, Bootstrap], Mapping[str, Bootstrap]]] = []
        for number in range(_HALVINGS):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(11, number)))
            own = self._any
            negative, *ood = (rng.permutation(each.size) for each in (own.negative, *own.ood.values()))
            halves = []
            for part in (slice(None, None, 2), slice(1, None, 2)):
                rows = {name: order[part] for name, order in zip(own.ood, ood)}
                taken = {label: each.take(negative[part], rows) for label, each in self.separations.items()}
                halves.append(resample(taken, [self.metric], seed=self.seed, replicates=_HALF_DRAWS))
            found.append((halves[0], halves[1]))
        return found

    def class_units(self) -> Mapping[str, SetUnits]:
        return self.statements.units

    def refusal(self, names: Sequence[str]) -> str:
        if self.metric.name != AUROC.name and self.metric.value is None:
            return f"{self.metric.name} has no weighted form"
        return self.statements.refusal(names)

    def counts(self, names: Sequence[str]) -> tuple[int, int, int]:
        own = self._any
        classes = {
            key
            for name in names
            if own.populations[name] == "sampled"
            for key in class_keys(name, own.ood_classes[name], own.class_names.get(name))
        }
        return own.negative.size, sum(own.ood[name].size for name in names), len(classes)


@dataclass(frozen=True)
class RejectionSource(Source):
    """Decisions at a threshold (DER, FRR, FAR) and the order of failures (AUGRC, AURC), as human-centric has them."""

    scored: Sequence[Scored]
    protocol: Protocol
    metric: Metric
    seed: int

    def __post_init__(self) -> None:
        kind, _, source = self.metric.name.partition("_")
        at_threshold = self.metric.sample is Decisions and kind.rstrip("0123456789") in ("der", "frr", "far") and source
        if not at_threshold and self.metric.sample is not Acceptance:
            raise DataError(
                f"{self.metric.name} is not compared under {self.protocol.name}; compare DER, FRR, FAR, AUGRC, AURC "
                "or another of selective prediction, or choose --protocol standard"
            )

    @cached_property
    def sets(self) -> dict[str, list[LabelledSet]]:
        """By name, the set as each detector's network sees it: what is right differs between networks."""
        by_table = {id(each.table): labelled_sets(each.table) for each in self.scored}
        rows = zip(*(by_table[id(each.table)] for each in self.scored))
        return {row[0].name: list(row) for row in rows}

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        of = {name: own[0].role for name, own in self.sets.items()}
        found = {group: [n for n, role in of.items() if role in roles] for group, roles in self.protocol.groups.items()}
        return {group: names for group, names in found.items() if names and all(map(self._defined, names))}

    def _defined(self, name: str) -> bool:
        """Whether the rate has images to count: FRR correct ones, FAR others."""
        own = self.sets[name]
        if self.metric.name.startswith("frr"):
            return all(each.correct.any() for each in own)
        return not self.metric.name.startswith("far") or all((~each.correct).any() for each in own)

    def images(self, names: Sequence[str]) -> Estimates:
        return join_sets([self._image_units[name] for name in names])

    def class_units(self) -> Mapping[str, SetUnits]:
        return self._class_units

    @cached_property
    def _image_units(self) -> dict[str, SetUnits]:
        return {name: self._units(name, "none") for name in self.sets if self._defined(name)}

    @cached_property
    def _class_units(self) -> dict[str, SetUnits]:
        return {name: self._units(name, self._population(name)) for name in self.sets if self._defined(name)}

    def refusal(self, names: Sequence[str]) -> str:
        drawn = [name for name in names if self._population(name) == "sampled"]
        if not drawn:
            return "no set has classes that were sampled from many"
        return "; ".join(filter(None, (refusal(name, self._classes(name), "sampled") for name in drawn)))

    def counts(self, names: Sequence[str]) -> tuple[int, int, int]:
        own = {name: self.sets[name][0] for name in names}
        sampled = [name for name in names if self._population(name) == "sampled"]
        return (
            sum(len(each) for each in own.values() if not each.is_ood),
            sum(len(each) for each in own.values() if each.is_ood),
            len({key for name in sampled for key in self._keys(name)}),
        )

    def _population(self, name: str) -> Population:
        if not self.sets[name][0].is_ood or (self._classes(name) < 0).any():
            return "none"
        return self.scored[0].table.context.populations.get(name, "sampled")

    def _classes(self, name: str) -> NDArray[np.int64]:
        return self.scored[0].table.frame["own_class"].to_numpy()[self.sets[name][0].rows]

    def _keys(self, name: str) -> tuple[str, ...]:
        return class_keys(name, self._classes(name), self.scored[0].table.context.classes.get(name))

    def _units(self, name: str, population: Population) -> SetUnits:
        return self._ordered(name, population) if self.metric.sample is Acceptance else self._decided(name, population)

    def _decided(self, name: str, population: Population) -> SetUnits:
        """Each image errs or not at a threshold; the images that the threshold comes from are drawn anew too."""
        kind, _, source = self.metric.name.partition("_")
        rate, keep = kind.rstrip("0123456789"), int(kind.lstrip("derfa")) / 100.0
        points, drawn, errors = [], [], []
        for each, own in zip(self.scored, self.sets[name]):
            column = each.table.scores(each.detector)
            sample = column[_threshold_rows(each.table, source)]
            rejection = Rejection(column[own.rows], own.correct)
            gamma = ThresholdSample(sample, each.label).threshold(keep).value
            drawn.append(getattr(rejection.at(self._thresholds(sample, keep)), rate))
            points.append(float(getattr(rejection.at(gamma), rate)))
            errors.append(_contributions(column[own.rows] >= gamma, own.correct, rate))
        of_ood = np.stack(errors, axis=1)
        values = plain = np.array(points)
        keys = None
        if population == "sampled":
            index = np.unique(self._classes(name), return_inverse=True)[1]
            sums = np.stack([np.bincount(index, each) for each in of_ood.T], axis=1)
            of_ood, keys = sums / np.bincount(index)[:, None], self._keys(name)
            values = of_ood.mean(axis=0)
        return SetUnits(name, values, plain, sqrt(DRAWS) * np.stack(drawn, axis=1), of_ood, keys)

    def _thresholds(self, sample: FloatArray, keep: float) -> FloatArray:
        """The thresholds of resamples of their images, the same images for every detector."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(10,)))
        rows = rng.integers(sample.size, size=(DRAWS, sample.size), dtype=np.int32)
        return np.array([ThresholdSample(sample[row], "resample").threshold(keep).value for row in rows])

    def _ordered(self, name: str, population: Population) -> SetUnits:
        """An OOD set together with ``id_test``; any other set by itself."""
        (known,) = (own for own in self.sets.values() if own[0].role == "id_test")
        if self.sets[name][0].is_ood:
            columns = [
                columns_of(
                    (column := each.table.scores(each.detector))[own_id.rows],
                    column[own.rows],
                    id_correct=own_id.correct,
                    ood_class=self._classes(name),
                )
                for each, own_id, own in zip(self.scored, known, self.sets[name])
            ]
            names = {name: self.scored[0].table.context.classes.get(name, ())}
            return weigh_sets(self.metric, {name: columns}, {name: population}, names, seed=self.seed)[name]
        values = []
        for each, own in zip(self.scored, self.sets[name]):
            alone = {"score": each.table.scores(each.detector)[own.rows], "correct": own.correct}
            ones = np.ones(len(own))
            stream = "" if own.role == "id_test" else name
            weights = np.concatenate([ones[None], draw_weights(ones, ones > 0, self.seed, stream)])
            values.append(evaluate(self.metric, alone, weights))
        table = np.stack(values, axis=1)
        units, none = sqrt(DRAWS) * table[1:], np.empty((0, len(values)))
        sides = (units, none) if self.sets[name][0].role == "id_test" else (none, units)
        return SetUnits(name, table[0], table[0], *sides)


def _threshold_rows(table: ScoreTable, source: str) -> NDArray[np.int64]:
    """Where the images stand that a threshold comes from, such as ``val_correct``."""
    part, _, kind = source.partition("_")
    rows = rows_of(table, f"id_{part}")
    rows = rows if kind == "all" else rows[table.correct()[rows]]
    if not len(rows):
        raise DataError(f"there are no scores of id_{part} to take the threshold {source} from; compare another metric")
    return rows


def _contributions(rejected: NDArray[np.bool_], correct: NDArray[np.bool_], rate: str) -> FloatArray:
    """What each image adds to a rate; images outside its denominator stand at its value, where they add no spread."""
    wrong = rejected == correct
    if rate == "der":
        return np.asarray(wrong, dtype=np.float64)
    inside = correct if rate == "frr" else ~correct
    share = float(wrong[inside].mean())
    # the mean over inside alone, written as a mean over all images
    return np.asarray(share + np.where(inside, wrong - share, 0.0) * (inside.size / inside.sum()))
