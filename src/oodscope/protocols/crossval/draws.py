"""Draws: which rows of a pair train, validate and test, in the order in which they are worked off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.base.hashing import fingerprint
from oodscope.data.folds.fold import DualFold
from oodscope.data.folds.sets import fold_sets
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
    """The rows of every draw of some pairs. Made once all pairs were looked over (``fold_sets``).

    The rows of an ID set do not depend on the OOD set, so that pairs can share a network.
    """

    def __init__(self, plan: CrossValidationPlan, pairs: Sequence[Pair]) -> None:
        self._folded = {pair: fold_sets(pair.id_set, pair.ood_set, plan.fold_plan(pair.level)) for pair in pairs}
        self._folds = lru_cache(maxsize=4 * len(pairs))(lambda pair, number: self._folded[pair].folds(number))
        self._hold_out = lru_cache(maxsize=64)(lambda pair, number: self._folded[pair].hold_out(number))

    def of(self, pair: Pair, draw: Draw) -> DualFold:
        """The rows of one draw of one pair."""
        if draw.kind == "fold":
            return self._folds(pair, draw.repetition)[draw.fold]
        if draw.kind == "hold_out":
            return self._hold_out(pair, draw.repetition)
        known, strange = self._hold_out(pair, draw.id_draw), self._hold_out(pair, draw.ood_draw)
        return replace(known, ood_train=strange.ood_train, ood_test=strange.ood_test)

    def notes(self) -> list[str]:
        """What a reader should know of the folds of each pair."""
        return [f"{pair.name}: {note}" for pair, folded in self._folded.items() for note in folded.notes]
