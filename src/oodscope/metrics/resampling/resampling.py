"""Stratified bootstrap of every point metric, and of their means over OOD sets, from draws shared by detectors.

ID and OOD images are resampled separately, each with replacement to its own size (Efron & Tibshirani 1993,
ch. 8). A replicate is never sorted: how often each image was drawn, summed in the order of the one sort, takes
the place of the counts of the ranking.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.metrics.metric import Columns, Metric, Weighted
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Positive, Walk
from oodscope.metrics.rejection.selective import draw_counts
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.draws import Draws, Words, Workspace, as_floats, lanes_for, resamples, running
from oodscope.metrics.scores import FloatArray, IntArray, check_scores

Sample = tuple[ArrayLike, Mapping[str, ArrayLike]]
"""The scores of one detector: of the ID images, and of each OOD set by name."""

_RANKED = tuple(metric.name for metric in RANKING)
_BLOCK = 2**16  # words in a block of replicates: shorter ones leave two threads waiting for the interpreter


def bootstrap(
    id_scores: ArrayLike, ood_sets: Mapping[str, ArrayLike], *, seed: int, replicates: int = 1000
) -> Bootstrap:
    """Replicates for one detector; see :func:`bootstrap_each`, which shares the draws between several."""
    return bootstrap_each({"": (id_scores, ood_sets)}, seed=seed, replicates=replicates)[""]


def bootstrap_each(
    detectors: Mapping[str, Sample],
    *,
    seed: int,
    replicates: int = 1000,
    metrics: Sequence[str] = _RANKED,
) -> dict[str, Bootstrap]:
    """Replicates of every metric, for every detector, on every OOD set.

    Replicate r holds the same images for all detectors, and its ID images are the same for all sets. To draw
    costs more than to measure, so the draws are made once; memory holds a few replicates at a time.

    Parameters
    ----------
    detectors : the scores of each detector, larger = more OOD, in one order of the images. The name of an OOD
        set takes part in the seed, so that sets of equal size are drawn independently and the draws of a set
        do not depend on which others stand beside it.
    seed : of all draws; see :func:`resamples`.
    metrics : metrics of a walk down the ranking; those of ``RANKING`` by default.
    replicates : with 1,000 the standard error of an end of a 95 % interval is about 2 % of its width.
    """
    for metric in metrics:
        if METRICS[metric].sample is not Walk:
            raise DataError(
                f"{metric} is not computed from a ranking of ID and OOD images, so it cannot be resampled here"
            )
    n_id, sizes = _check(detectors, replicates)
    largest = max(1, n_id, *sizes.values())
    lanes = lanes_for(largest)
    rows = min(max(1, _BLOCK // largest), -(-replicates // lanes))
    id_draws = Draws(n_id, seed=seed, ood_set=None, rows=rows, lanes=lanes)
    draws = {name: Draws(n, seed=seed, ood_set=name, rows=rows, lanes=lanes) for name, n in sizes.items()}
    ranked = [_Ranked(*sample, metrics=metrics, lanes=lanes, replicates=replicates) for sample in detectors.values()]
    workers = min(_processors(), len(ranked))
    workspaces = [Workspace() for _ in range(workers)]

    def work(worker: int, start: int, id_counts: Words, counts: Mapping[str, Words]) -> None:
        for each in ranked[worker::workers]:
            each.measure(id_counts, counts, start, workspaces[worker])

    # threads: NumPy lets go of the interpreter while it computes
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, replicates, rows * lanes):
            id_counts, counts = id_draws.take(), {name: drawn.take() for name, drawn in draws.items()}
            for done in [pool.submit(work, worker, start, id_counts, counts) for worker in range(workers)]:
                done.result()
    return {name: each.result() for name, each in zip(detectors, ranked)}


def bootstrap_values(
    detectors: Mapping[str, Mapping[str, Columns]], metrics: Sequence[Metric], *, seed: int, replicates: int = 1000
) -> dict[str, Bootstrap]:
    """Replicates of metrics that are weighted functionals of plain columns (``Metric.value``), in step with the others.

    Replicate r draws the images that replicate r of :func:`bootstrap_each` draws with the same seed, so metrics of both
    kinds can be compared replicate by replicate.

    Parameters
    ----------
    detectors : by detector and OOD set the columns of the ID images, then of the OOD images.
    """
    columns = next(iter(detectors.values()))
    n_id = {name: int((~each["is_ood"]).sum()) for name, each in columns.items()}
    found: dict[str, dict[str, dict[str, FloatArray]]] = {
        detector: {metric.name: {} for metric in metrics} for detector in detectors
    }
    for name in columns:
        known = draw_counts(resamples(n_id[name], seed=seed), n_id[name], replicates)
        n_ood = len(columns[name]["is_ood"]) - n_id[name]
        drawn = draw_counts(resamples(n_ood, seed=seed, ood_set=name), n_ood, replicates)
        counts = np.hstack([known, drawn])
        for detector, sets in detectors.items():
            for metric in metrics:
                value = _functional(metric)
                replicate = [value(sets[name], row.astype(np.float64)) for row in counts]
                found[detector][metric.name][name] = np.asarray(replicate)
    return {
        detector: Bootstrap(
            found[detector],
            {
                metric.name: {
                    name: _functional(metric)(each, np.ones(len(each["score"]))) for name, each in sets.items()
                }
                for metric in metrics
            },
        )
        for detector, sets in detectors.items()
    }


def _functional(metric: Metric) -> Weighted:
    if metric.value is None:
        raise DataError(f"{metric.name} has no weighted form (Metric.value), so it cannot be resampled")
    return metric.value


def _side(metric: Metric) -> Positive:
    assert metric.positive is not None, "metrics of a walk have a side"
    return metric.positive


def _point(metric: Metric, ranking: Ranking) -> float:
    assert metric.of is not None, "metrics of a walk are computed from it"
    return float(metric.of(ranking.walk(_side(metric))))


class _Ranked:
    """One detector: its images in the order of their scores, and the replicates found so far."""

    def __init__(
        self,
        id_scores: ArrayLike,
        ood_sets: Mapping[str, ArrayLike],
        *,
        metrics: Sequence[str],
        lanes: int,
        replicates: int,
    ) -> None:
        id_checked = check_scores(id_scores, "ID scores")
        ood = {name: check_scores(scores, f"{name} scores") for name, scores in ood_sets.items()}
        self._rankings = {name: Ranking(id_checked, scores) for name, scores in ood.items()}
        self._id_order = np.argsort(id_checked)
        self._orders = {name: np.argsort(scores) for name, scores in ood.items()}
        sides = {_side(METRICS[metric]) for metric in metrics}
        self._steps = {
            name: {positive: _Steps(ranking.walk(positive), positive) for positive in sides}
            for name, ranking in self._rankings.items()
        }
        self._lanes = lanes
        self._values = {metric: {name: np.empty(replicates) for name in ood} for metric in metrics}

    def measure(self, id_counts: Words, counts: Mapping[str, Words], start: int, workspace: Workspace) -> None:
        """Every metric of the replicates from ``start`` on, from how often each of them drew each image."""
        wanted = {metric: METRICS[metric] for metric in self._values}
        id_sums = running(id_counts, self._id_order, workspace, "id")
        for name, order in self._orders.items():
            ood_sums = running(counts[name], order, workspace, "ood")
            for positive, steps in self._steps[name].items():
                own, other = (ood_sums, id_sums) if positive == "ood" else (id_sums, ood_sums)
                walk = steps.resampled(own, other, self._lanes, workspace)
                for metric, info in wanted.items():
                    if info.positive == positive and info.of is not None:
                        # the last block may hold more replicates than were asked for
                        target = self._values[metric][name][start:]
                        found = info.of(walk)[: target.size]
                        target[: found.size] = found

    def result(self) -> Bootstrap:
        """All replicates, beside the values that they scatter around."""
        points = {
            metric: {name: _point(METRICS[metric], ranking) for name, ranking in self._rankings.items()}
            for metric in self._values
        }
        return Bootstrap(self._values, points)


class _Steps:
    """Where the walk from one side reads the running sums of the draws: the same places for every replicate."""

    def __init__(self, walk: Walk, positive: Positive) -> None:
        self._walk = walk
        self._from_top = positive == "ood"
        self._tp = self._places(walk.tp, walk.n_positive)
        self._fp = self._places(walk.fp, walk.n_negative)
        tied = not np.array_equal(walk.fp, walk.fp_before)
        self._fp_before = self._places(walk.fp_before, walk.n_negative) if tied else None

    def resampled(self, positives: Words, negatives: Words, lanes: int, workspace: Workspace) -> Walk:
        """The walks of the replicates in the lanes."""
        fp = self._read(negatives, self._fp, lanes, workspace, "fp")
        before = fp
        if self._fp_before is not None:
            before = self._read(negatives, self._fp_before, lanes, workspace, "fp_before")
        tp = self._read(positives, self._tp, lanes, workspace, "tp")
        return Walk(tp, fp, before, self._walk.n_positive, self._walk.n_negative, workspace)

    def _places(self, met: FloatArray, n: float) -> IntArray:
        """Running sums lie in ascending order of the scores; seen from the top, k images met leave n - k."""
        return (n - met if self._from_top else met).astype(np.intp)

    def _read(self, sums: Words, places: IntArray, lanes: int, workspace: Workspace, name: str) -> FloatArray:
        shape = (sums.shape[0], places.size)
        read: Words = sums.take(places, axis=1, out=workspace.array("read", shape, np.uint64), mode="clip")
        if self._from_top:
            np.subtract(sums[:, -1:], read, out=read)
        return as_floats(read, lanes, workspace, name)


def _check(detectors: Mapping[str, Sample], replicates: int) -> tuple[int, dict[str, int]]:
    """The number of ID images and of images in each OOD set, which all detectors must share."""
    sizes = [
        (np.size(id_scores), {name: np.size(scores) for name, scores in ood.items()})
        for id_scores, ood in detectors.values()
    ]
    if replicates < 1 or not sizes or not sizes[0][1]:
        has = f"{replicates} and {len(sizes[0][1]) if sizes else 0}"
        raise DataError(f"a bootstrap needs at least one replicate and one OOD set; it has {has}")
    for name, each in zip(detectors, sizes):
        if each != sizes[0]:
            raise DataError(f"{name}: detectors share their draws, so all must score the same images; sizes differ")
    return sizes[0]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
