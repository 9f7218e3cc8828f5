"""Worlds in which the truth about detectors is known; OOD classes, images and networks are drawn for many tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from oodscope.metrics.comparison.influence import Estimates, SetUnits, join_sets, place_sets
from oodscope.metrics.comparison.networks import average_networks, compared_trainings, paired_by_seed

Array = NDArray[np.float64]
SVHN = np.array([1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]) / 26032
SEEDS, METHODS, LUCK = 3, 8, 0.12
"""Networks of a method, methods of a table of trainings, and how far a network moves a method."""


@dataclass(frozen=True)
class World:
    """OOD score = 1 + class + class x detector + image; ID score = image.

    Parameters
    ----------
    spread, own_spread : of the effects of classes, shared by all detectors and each detector's own.
    sizes : of the classes: ``balanced``, ``svhn``, or ``dominant`` (one holds the share ``largest``).
    skewed : own effects are exponential instead of normal.
    common : the part of an image's score that all detectors share.
    """

    classes: int = 10
    per_class: int = 20
    n_id: int = 400
    spread: float = 0.4
    own_spread: float = 0.3
    sizes: str = "balanced"
    largest: float = 0.35
    skewed: bool = False
    common: float = 0.8

    def labels(self) -> NDArray[np.int64]:
        """The class of each OOD image."""
        shares = np.ones(self.classes)
        if self.sizes == "svhn":
            shares = np.resize(SVHN, self.classes)
        elif self.sizes == "dominant":
            shares = np.r_[self.largest, np.full(self.classes - 1, (1.0 - self.largest) / (self.classes - 1))]
        counts = np.round(self.classes * self.per_class * shares / shares.sum()).astype(np.int64)
        return np.repeat(np.arange(self.classes), np.maximum(counts, 2))

    def effects(self, rng: np.random.Generator, tables: int, detectors: int) -> Array:
        """Of classes, ``[table, detector, class]``; the first part is shared by the detectors of a table."""
        shape = (tables, detectors, self.classes)
        own = rng.exponential(size=shape) - 1.0 if self.skewed else rng.normal(size=shape)
        return self.spread * rng.normal(size=(tables, 1, self.classes)) + self.own_spread * own

    def draw(self, rng: np.random.Generator, effects: Array, shifts: object = 0.0) -> tuple[Array, Array]:
        """ID and OOD scores ``[table, detector, image]``; ``shifts`` are of detectors, or of detectors by table."""
        labels = self.labels()
        tables, detectors, _ = effects.shape
        moved = 1.0 + effects + np.broadcast_to(np.asarray(shifts, dtype=np.float64), (tables, detectors))[..., None]
        known, images = (self._images(rng, tables, detectors, count) for count in (self.n_id, labels.size))
        return known, moved[:, :, labels] + images

    def table(
        self, rng: np.random.Generator, detectors: int, shifts: object = 0.0, effects: Array | None = None
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """ID scores and OOD scores ``[detector, image]`` of one table, and the class of each OOD image."""
        known, ood = self.draw(rng, self.effects(rng, 1, detectors) if effects is None else effects, shifts)
        return known[0], ood[0], self.labels()

    def _images(self, rng: np.random.Generator, tables: int, detectors: int, count: int) -> Array:
        own = np.sqrt(1.0 - self.common**2) * rng.normal(size=(tables, detectors, count))
        return self.common * rng.normal(size=(tables, 1, count)) + own

    def auroc(self, shift: float = 0.0) -> float:
        """The truth over all classes that could be drawn."""
        if not self.skewed:
            return float(norm.cdf((1.0 + shift) / np.sqrt(2.0 + self.spread**2 + self.own_spread**2)))
        steps = (np.arange(20_000) + 0.5) / 20_000
        own = self.own_spread * (-np.log(steps) - 1.0)
        return float(norm.cdf((1.0 + shift + own) / np.sqrt(2.0 + self.spread**2)).mean())

    def shift_for(self, difference: float) -> float:
        """The shift of the scores that changes the AUROC by so much."""
        return float(brentq(lambda shift: self.auroc(shift) - self.auroc() - difference, 0.0, 20.0))


def units(world: World, known: Array, ood: Array) -> list[SetUnits]:
    """What every unit contributes; the detectors of all tables stand beside each other as columns.

    Columns of two tables have nothing in common but the labels, so only differences within a table mean anything.
    """
    flat = [each.reshape(-1, each.shape[-1]) for each in (known, ood)]
    return list(place_sets(flat[0], {"o": flat[1]}, {"o": world.labels()}, {"o": "sampled"}).values())


def one_network(
    world: World, rng: np.random.Generator, tables: int, detectors: int, shifts: object = 0.0
) -> list[Estimates]:
    """Tables of detectors on one set whose classes are sampled."""
    whole = join_sets(units(world, *world.draw(rng, world.effects(rng, tables, detectors), shifts)))
    return split(whole, tables, detectors)


def split(whole: Estimates, tables: int, detectors: int) -> list[Estimates]:
    """The columns of every table."""
    return [whole.take(range(at * detectors, (at + 1) * detectors)) for at in range(tables)]


def networks(
    world: World, rng: np.random.Generator, tables: int, shifts: object, shared: float
) -> list[list[SetUnits]]:
    """The units of three networks of every method; ``shared`` is the part of a network's luck that all share."""
    effects = world.effects(rng, tables, METHODS)
    found = []
    for _ in range(SEEDS):
        luck = shared * rng.normal(size=(tables, 1)) + np.sqrt(1.0 - shared**2) * rng.normal(size=(tables, METHODS))
        found.append(units(world, *world.draw(rng, effects, LUCK * luck + np.asarray(shifts))))
    return found


def post_hoc(
    world: World, rng: np.random.Generator, tables: int, detectors: int, shifts: object = 0.0
) -> list[Estimates]:
    """Detectors that share three checkpoints."""
    whole = paired_by_seed(networks(world, rng, tables, widened(shifts), shared=0.9))
    return [each.take(range(detectors)) for each in split(whole, tables, METHODS)]


def trainings(
    world: World, rng: np.random.Generator, tables: int, detectors: int, shifts: object = 0.0
) -> list[Estimates]:
    """Methods with three seeds of their own, the spread of seeds pooled over the eight of a table."""
    drawn = networks(world, rng, tables, widened(shifts), shared=0.0)
    by_seed = np.stack([join_sets(each).values for each in drawn]).reshape(SEEDS, tables, METHODS)
    averaged = split(join_sets(average_networks(drawn)), tables, METHODS)
    return [compared_trainings(own, list(by_seed[:, at].T)).take(range(detectors)) for at, own in enumerate(averaged)]


def widened(shifts: object) -> Array:
    """Shifts of some detectors, and none of the other methods of the table."""
    given = np.atleast_1d(np.asarray(shifts, dtype=np.float64))
    return np.r_[given, np.zeros(METHODS - given.size)] if given.size > 1 else np.full(METHODS, given[0])


def joined(tables: Sequence[Estimates]) -> tuple[Array, Array, Array]:
    """Difference, standard error and degrees of freedom of the pairs (0, 1), (2, 3), ... of every table."""
    pairs = len(tables[0]) // 2
    weights = np.zeros((len(tables[0]), pairs))
    weights[2 * np.arange(pairs), np.arange(pairs)], weights[2 * np.arange(pairs) + 1, np.arange(pairs)] = 1.0, -1.0
    parts = zip(*(table.contrasts(weights) for table in tables))
    difference, error, freedom = (np.concatenate(each) for each in parts)
    return difference, error, freedom
