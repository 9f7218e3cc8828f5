"""Which training images detectors are fitted on, and which are scored to set thresholds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.data.imageset import ImageSet
from oodscope.protocols.human_options import HumanCentric


@dataclass(frozen=True)
class TrainingRows:
    """The two uses of ``id_train``; the same images unless a split was asked for, or there are very many.

    Parameters
    ----------
    fitted : what detectors learn from.
    scored : what thresholds are read from.
    """

    fitted: ImageSet
    scored: ImageSet

    def record(self) -> dict[str, int]:
        """How many images each use has, for the score table."""
        return {"fitted": len(self.fitted), "scored": len(self.scored)}


def training_rows(images: ImageSet, options: HumanCentric, seed: int) -> TrainingRows:
    """Divide ``id_train`` as the options say, by a seeded draw."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    fitted, scored = images, images
    if options.threshold_split:
        half = _half_of_each_class(images.labels, rng)
        fitted, scored = images.take(np.flatnonzero(half)), images.take(np.flatnonzero(~half))
    if len(scored) > options.train_rows:
        scored = scored.take(np.sort(rng.choice(len(scored), size=options.train_rows, replace=False)))
    return TrainingRows(fitted, scored)


def _half_of_each_class(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """True for every second image of each class in a random order; the odd one is fitted on."""
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    ordered = labels[by_class]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rank = np.arange(len(labels)) - np.repeat(starts, np.diff(np.append(starts, len(labels))))
    half = np.zeros(len(labels), dtype=bool)
    half[by_class] = rank % 2 == 0
    return half
