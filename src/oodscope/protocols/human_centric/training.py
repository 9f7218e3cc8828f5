"""Which training images detectors are fitted on, and which are scored to set thresholds."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oodscope.data.benchmark import Benchmark


def divided(benchmark: Benchmark, *, split: bool, most: int, seed: int) -> Benchmark:
    """The benchmark with ``id_train`` for fitting and ``scored_train`` for thresholds; see :func:`training_rows`."""
    images = benchmark.id_train
    if images is None:
        return benchmark
    everything = np.arange(len(images))
    fitted, scored = (
        images if np.array_equal(rows, everything) else images.take(rows)
        for rows in training_rows(images.labels, split=split, most=most, seed=seed)
    )
    return replace(benchmark, id_train=fitted, scored_train=scored)


def training_rows(
    labels: NDArray[np.int64], *, split: bool, most: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of ``id_train`` that detectors are fitted on, and those that are scored, by a seeded draw.

    Parameters
    ----------
    split : fit on one half of each class and score the other; otherwise both are the same images.
    most : at most so many are scored.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    fitted = scored = np.arange(len(labels))
    if split:
        half = _half_of_each_class(labels, rng)
        fitted, scored = np.flatnonzero(half), np.flatnonzero(~half)
    if len(scored) > most:
        scored = scored[np.sort(rng.choice(len(scored), size=most, replace=False))]
    return fitted, scored


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
