"""Where the randomness of folds comes from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from oodscope.base.errors import DataError

_KINDS = ("folds", "hold_out")
_PARTS = ("id", "ood", "val")


@dataclass(frozen=True)
class Draw:
    """One repetition's random streams: a pure function of seed and repetition.

    Each part has a stream of its own. So the ID folds are the same whatever they are tested against, and a network
    trained on them serves every OOD set.

    Parameters
    ----------
    seed, repetition : 0 or larger.
    kind : a hold-out does not repeat what the folds of the same repetition draw.
    shuffle : without it nothing is drawn, and everything is dealt in the order it has.
    """

    seed: int
    repetition: int
    kind: Literal["folds", "hold_out"] = "folds"
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.seed < 0 or self.repetition < 0:
            raise DataError(f"seed and repetition must not be negative: {self.seed}, {self.repetition}")

    def stream(self, part: Literal["id", "ood", "val"], fold: int = 0) -> np.random.Generator | None:
        """The numbers for one part of the work."""
        if not self.shuffle:
            return None
        return np.random.default_rng([self.seed, self.repetition, _KINDS.index(self.kind), _PARTS.index(part), fold])
