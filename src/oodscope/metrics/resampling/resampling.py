"""Stratified bootstrap of every point metric, and of their means over OOD sets, from draws shared by detectors.

ID and OOD images are resampled separately, each with replacement to its own size (Efron & Tibshirani 1993, ch. 8).
"""

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.metrics.metric import Columns, Metric, Weighted
from oodscope.metrics.ranking.readings import PrecisionArea, Reading
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.rejection.selective import draw_counts
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.counting import LANES, Pair, pairs_of, replicates_of, replicates_together
from oodscope.metrics.resampling.draws import Drawn, Draws, Workspace, resamples
from oodscope.metrics.scores import FloatArray, check_scores

Sample = tuple[ArrayLike, Mapping[str, ArrayLike]]
"""The scores of one detector: of the ID images, and of each OOD set by name."""

_RANKED = tuple(metric.name for metric in RANKING)
_LONG = 2**29  # images times replicates times detectors: some seconds of a core
_SHORT = 2**24  # a tenth of a second of a core
_ROUNDING = 1e-13  # of an area: ten times the largest difference seen between two orders of summation


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
    device: str | None = None,
) -> dict[str, Bootstrap]:
    """Replicates of every metric, for every detector, on every OOD set.

    Replicate r holds the same images for all detectors, and its ID images are the same for all sets. The draws are
    made once, some replicates at a time.

    Parameters
    ----------
    detectors : the scores of each detector, larger = more OOD, in one order of the images. The name of an OOD
        set takes part in the seed, so that sets of equal size are drawn independently and the draws of a set
        do not depend on which others stand beside it.
    seed : of all draws; see :func:`resamples`.
    metrics : metrics of a walk down the ranking; those of ``RANKING`` by default.
    replicates : with 1,000 the standard error of an end of a 95 % interval is about 2 % of its width. With 0 there
        are the values of the samples alone.
    device : where torch counts, such as ``"cuda"``; ``"cpu"`` is the processor without torch. By default an
        accelerator takes what would keep the processor busy for long. Values agree to rounding (1e-12).
    """
    wanted = [_walked(metric) for metric in metrics]
    n_id, sizes = _check(detectors, replicates)
    checked = {
        detector: (check_scores(known, "ID scores"), {k: check_scores(v, f"{k} scores") for k, v in ood.items()})
        for detector, (known, ood) in detectors.items()
    }
    samples: dict[str | None, int] = {None: n_id}
    samples.update(sizes.items())
    device = device or _device(len(checked) * sum(samples.values()) * replicates)
    # threads: NumPy lets go of the interpreter while it computes
    with ThreadPoolExecutor(_processors()) as pool:
        sorted_ = pool.map(lambda sample: pairs_of(*sample), checked.values())
        pairs = {(detector, name): pair for detector, each in zip(detectors, sorted_) for name, pair in each.items()}
        values = _replicate(pool, pairs, samples, wanted, seed, replicates, device)
    return {detector: _bootstrap(detector, list(sizes), wanted, pairs, values) for detector in detectors}


def _bootstrap(
    detector: str, sets: Sequence[str], metrics: Sequence[Metric], pairs: "Mapping[_Key, Pair]", values: "_Values"
) -> Bootstrap:
    points = {metric.name: {name: _point(metric, pairs[detector, name]) for name in sets} for metric in metrics}
    replicates = {metric.name: {name: values[detector, name][metric.name] for name in sets} for metric in metrics}
    for metric in metrics:
        if isinstance(metric.of, PrecisionArea):
            # sums in another order differ in the last bits, and an interval counts replicates that equal the point
            for name, each in replicates[metric.name].items():
                point = points[metric.name][name]
                each[np.abs(each - point) <= _ROUNDING] = point
    return Bootstrap(replicates, points)


_Key = tuple[str, str]
"""A detector and an OOD set."""


_Values = dict[_Key, dict[str, FloatArray]]


def _replicate(
    pool: ThreadPoolExecutor,
    pairs: Mapping[_Key, Pair],
    samples: Mapping[str | None, int],
    metrics: Sequence[Metric],
    seed: int,
    replicates: int,
    device: str,
) -> _Values:
    """Readings on the device, if there is one; whatever else a third party computes from walks by the processor."""
    readings = [metric for metric in metrics if isinstance(metric.of, Reading)]
    values: _Values = {key: {} for key in pairs}
    if device != "cpu" and readings:
        from oodscope.metrics.resampling.device import bootstrap_on  # late: torch is slow to import

        values = bootstrap_on(device, pairs, samples, readings, seed=seed, replicates=replicates, pool=pool)
        metrics = [metric for metric in metrics if metric not in readings]
    if metrics:
        draws = {name: Draws(n, seed=seed, ood_set=name) for name, n in samples.items()}
        for key, counted in _count(pool, pairs, draws, metrics, replicates).items():
            values[key].update(counted)
    return values


def _device(work: int) -> str:
    """An accelerator where there is one and it pays to wait for torch; one that is at work already pays much sooner."""
    loaded = sys.modules.get("torch")
    if work < (_SHORT if loaded is not None and loaded.cuda.is_initialized() else _LONG):
        return "cpu"
    import torch  # late: slow to import

    return "cuda" if torch.cuda.is_available() else "cpu"


def _count(
    pool: ThreadPoolExecutor,
    pairs: Mapping[_Key, Pair],
    draws: Mapping[str | None, Draws],
    metrics: Sequence[Metric],
    replicates: int,
) -> _Values:
    """The replicates of every pair; detectors share the draws, which are made some replicates at a time.

    The next share of the draws is asked for before detectors are measured on the present one, so no thread waits for
    another; and it is asked for when the present one has been made, so no more than three are held.
    """
    values = {key: {metric.name: np.empty(replicates) for metric in metrics} for key in pairs}
    by_detector: dict[str, dict[str, Pair]] = {}
    for (detector, name), pair in pairs.items():
        by_detector.setdefault(detector, {})[name] = pair
    workspaces = threading.local()

    def measure(detector: str, drawn: Mapping[str | None, Drawn], start: int) -> None:
        if not hasattr(workspaces, "own"):
            workspaces.own = Workspace()
        for name, measured in replicates_of(by_detector[detector], drawn, metrics, workspaces.own).items():
            for metric, each in measured.items():
                # the last share may hold up to three replicates more than were asked for
                target = values[detector, name][metric][start:]
                target[: each.size] = each[: target.size]

    share = replicates_together(draws[None].n)
    sizes = [min(share, -(-(replicates - start) // LANES) * LANES) for start in range(0, replicates, share)]
    # the largest set first, so that nobody waits for it alone
    longest_first = sorted(draws, key=lambda name: -draws[name].n)
    measuring: list[Future[None]] = []
    drawing: dict[str | None, Future[Drawn]] = {}
    for number in range(len(sizes) + 1):
        drawn = {name: done.result() for name, done in drawing.items()}
        if number < len(sizes):
            drawing = {name: pool.submit(draws[name].take, sizes[number]) for name in longest_first}
        if drawn:
            measuring += [pool.submit(measure, detector, drawn, (number - 1) * share) for detector in by_detector]
    for measured in measuring:
        measured.result()
    return values


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


def _walked(name: str) -> Metric:
    metric = METRICS[name]
    if metric.sample is not Walk:
        raise DataError(f"{name} is not computed from a ranking of ID and OOD images, so it cannot be resampled here")
    return metric


def _point(metric: Metric, pair: Pair) -> float:
    assert metric.of is not None and metric.positive is not None, "metrics of a walk are computed from it"
    return float(metric.of(pair.ranking.walk(metric.positive)))


def _check(detectors: Mapping[str, Sample], replicates: int) -> tuple[int, dict[str, int]]:
    """The number of ID images and of images in each OOD set, which all detectors must share."""
    sizes = [
        (np.size(id_scores), {name: np.size(scores) for name, scores in ood.items()})
        for id_scores, ood in detectors.values()
    ]
    if replicates < 0 or not sizes or not sizes[0][1]:
        has = f"{replicates} and {len(sizes[0][1]) if sizes else 0}"
        raise DataError(f"a bootstrap needs no negative number of replicates, and at least one OOD set; it has {has}")
    for name, each in zip(detectors, sizes):
        if each != sizes[0]:
            raise DataError(f"{name}: detectors share their draws, so all must score the same images; sizes differ")
    return sizes[0]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
