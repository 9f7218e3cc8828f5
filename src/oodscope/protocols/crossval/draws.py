"""Draws: which rows of a pair train, validate and test, in the order in which they are worked off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.base.hashing import fingerprint
from oodscope.data.folds import DualFold, dual_folds, dual_hold_out, hierarchical_folds, hierarchical_hold_out
from oodscope.protocols.crossval.pair import Pair
from oodscope.protocols.crossval.plan import CrossValidationPlan

Rows = NDArray[np.int64]


class TrainingRows(NamedTuple):
    """What one training sees: rows of the ID set to learn from and to be stopped by, outliers if any, and its seed."""

    train: Rows
    val: Rows
    seed: int
    outliers: Rows | None = None


@dataclass(frozen=True)
class Draw:
    """One division of a pair's images.

    Parameters
    ----------
    kind : a ``fold`` of a cross-validation, a ``hold_out`` of the benchmark truth, or a ``crossed`` hold-out.
    repetition : of the cross-validation or hold-out; a number of its own for each crossed hold-out.
    fold : 0 unless the kind is ``fold``.
    id_draw, ood_draw : the repetition that ID images and OOD classes are drawn as.
    training_seed : which of several trainings on the same rows.
    """

    kind: Literal["fold", "hold_out", "crossed"]
    repetition: int
    fold: int = 0
    id_draw: int = 0
    ood_draw: int = 0
    training_seed: int = 0

    @property
    def name(self) -> str:
        """Unique in a plan, and good for a file."""
        return f"{self.kind}-{self.repetition:03d}-{self.fold}"

    def seed(self, plan: CrossValidationPlan) -> int:
        """Of the training: another one for every draw of a plan, the same for all pairs."""
        if self.kind == "crossed":
            parts: list[int | str] = [self.kind, self.training_seed]
        else:
            parts = [self.kind, self.repetition, self.fold]
        return int(fingerprint([plan.seed, *parts])[:8], 16)


def all_draws(plan: CrossValidationPlan) -> Iterator[Draw]:
    """Every draw of a plan: whole repetitions first, then the truth, then the crossed design."""
    for repetition, fold in product(range(plan.repetitions), range(plan.folds)):
        yield Draw("fold", repetition, fold)
    for repetition in range(plan.hold_outs):
        yield Draw("hold_out", repetition)
    if plan.variance_design is not None:
        cells = product(*map(range, plan.variance_design))
        for number, (id_draw, ood_draw, training_seed) in enumerate(cells):
            yield Draw("crossed", number, 0, id_draw, ood_draw, training_seed)


class Divisions:
    """The rows of every draw. Those of the ID set do not depend on the OOD set, so that pairs can share a network.

    The folds of a repetition are drawn together and kept until another repetition is asked for.
    """

    def __init__(self, plan: CrossValidationPlan) -> None:
        self.plan = plan
        self._folds = lru_cache(maxsize=64)(self._all_folds)
        self._hold_out = lru_cache(maxsize=64)(self._one_hold_out)

    def of(self, pair: Pair, draw: Draw) -> DualFold:
        """The rows of one draw of one pair."""
        if draw.kind == "fold":
            return self._folds(pair, draw.repetition)[draw.fold]
        if draw.kind == "hold_out":
            return self._hold_out(pair, draw.repetition)
        strange = self._hold_out(pair, draw.ood_draw)
        known = self._hold_out(pair, draw.id_draw)
        return replace(known, ood_train=strange.ood_train, ood_test=strange.ood_test)

    def warnings(self, pair: Pair) -> tuple[str, ...]:
        """What the folds of a pair with a hierarchy cannot give."""
        if pair.level is None:
            return ()
        drawn = hierarchical_folds(*self._columns(pair), **self._options(0))
        return tuple(f"{pair.name}: {warning}" for warning in drawn.warnings)

    def _all_folds(self, pair: Pair, repetition: int) -> Sequence[DualFold]:
        if pair.level is None:
            return dual_folds(pair.id_set.labels, pair.ood_set.labels, **self._options(repetition))
        return hierarchical_folds(*self._columns(pair), **self._options(repetition)).folds

    def _one_hold_out(self, pair: Pair, repetition: int) -> DualFold:
        if pair.level is None:
            return dual_hold_out(pair.id_set.labels, pair.ood_set.labels, **self._options(repetition))
        return hierarchical_hold_out(*self._columns(pair), **self._options(repetition))

    def _columns(self, pair: Pair) -> tuple[Rows, Rows, NDArray[Any]]:
        assert pair.level is not None, "asked only of pairs with a hierarchy"
        return pair.id_set.labels, pair.ood_set.labels, pair.ood_set.hierarchy[pair.level]

    def _options(self, repetition: int) -> dict[str, Any]:
        plan = self.plan
        return {"folds": plan.folds, "repetition": repetition, "seed": plan.seed, "val_share": plan.val_share}
