"""Which training images detectors are fitted on, and which are scored to set thresholds."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oodscope.data.benchmark import Benchmark


def divided(benchmark: Benchmark, *, split: bool, most: int, seed: int) -> Benchmark:
    """The benchmark with ``id_train`` for fitting and ``scored_train`` for thresholds, by a seeded draw.

    Parameters
    ----------
    split : fit on one half of each class and score the other; otherwise both are the same images.
    most : at most so many are scored.
    """
    images = benchmark.id_train
    if images is None:
        return benchmark
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    fitted, scored = images, images
    if split:
        half = _half_of_each_class(images.labels, rng)
        fitted, scored = images.take(np.flatnonzero(half)), images.take(np.flatnonzero(~half))
    if len(scored) > most:
        scored = scored.take(np.sort(rng.choice(len(scored), size=most, replace=False)))
    return replace(benchmark, id_train=fitted, scored_train=scored)


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
