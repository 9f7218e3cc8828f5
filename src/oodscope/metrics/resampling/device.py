"""The bootstrap on an accelerator: the same counts and sums as on the processor, all replicates of a pair at once.

Draws are made by the processor, so that both give the same replicates; values agree to rounding (1e-12).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from oodscope.metrics.metric import Metric
from oodscope.metrics.ranking.readings import FprAtTpr, PrecisionArea, Reading, RocArea
from oodscope.metrics.ranking.walk import Walk, least_count, most_count
from oodscope.metrics.resampling.counting import Pair
from oodscope.metrics.resampling.draws import random_rows
from oodscope.metrics.scores import FloatArray, IntArray

_BYTES = 96
"""Held at a time for each image and replicate of a pair: counts, sums, and float64 columns of its two walks."""

Samples = Mapping[str | None, int]
"""The number of images of each OOD set, and of the ID sample (``None``)."""


def bootstrap_on(
    device: str,
    pairs: Mapping[tuple[str, str], Pair],
    samples: Samples,
    metrics: Sequence[Metric],
    *,
    seed: int,
    replicates: int,
    pool: ThreadPoolExecutor,
) -> dict[tuple[str, str], dict[str, FloatArray]]:
    """Replicates of metrics that are readings, for every detector and OOD set."""
    where = torch.device(device)
    numbers = {name: random_rows(seed, name) for name in samples}
    values: dict[tuple[str, str], list[dict[str, Tensor]]] = {key: [] for key in pairs}
    share = _share(where, samples, replicates)
    for start in range(0, replicates, share):
        size = min(share, replicates - start)
        # the small sets first: while they are measured, the processor draws the large ones
        order = sorted(samples, key=lambda name: (name is not None, samples[name]))
        drawn = {name: pool.submit(_draw, numbers[name], samples[name], size) for name in order}
        id_counts = _counts(drawn[None].result(), where)
        for name in order[1:]:
            counts = _counts(drawn.pop(name).result(), where)
            for key, pair in pairs.items():
                if key[1] == name:
                    values[key].append(_measure(pair, id_counts, counts, metrics))
    return {
        key: {metric.name: torch.cat([share[metric.name] for share in shares]).cpu().numpy() for metric in metrics}
        for key, shares in values.items()
    }


def _share(device: torch.device, samples: Samples, replicates: int) -> int:
    """How many replicates fit into half of the free memory."""
    if device.type != "cuda":
        return replicates
    free, _ = torch.cuda.mem_get_info(device)
    needed = _BYTES * max(n for n in samples.values()) + _BYTES * (samples[None] or 0)
    return max(1, min(replicates, free // 2 // needed))


def _draw(numbers: np.random.Generator, n: int, replicates: int) -> IntArray:
    # 32 bits take the same numbers from the stream as 64, and half of the time on their way
    return numbers.integers(n, size=(replicates, n), dtype=np.int32)


def _counts(drawn: IntArray, device: torch.device) -> Tensor:
    """``[replicate, image]``: how often each image was drawn."""
    rows = torch.from_numpy(drawn).to(device).long()
    return torch.zeros(rows.shape, dtype=torch.int32, device=device).scatter_add_(
        1, rows, torch.ones((), dtype=torch.int32, device=device).expand_as(rows)
    )


def _measure(pair: Pair, id_counts: Tensor, ood_counts: Tensor, metrics: Sequence[Metric]) -> dict[str, Tensor]:
    id_sums = _running(id_counts, pair.id_order)
    ood_sums = _running(ood_counts, pair.ood_order)
    found: dict[str, Tensor] = {}
    for side, own, other in (("id", id_sums, ood_sums), ("ood", ood_sums, id_sums)):
        wanted = [metric for metric in metrics if metric.positive == side]
        if wanted:
            walk = _Walks(pair.ranking.walk(side), own, other)  # type: ignore[arg-type]  # a literal of the tuple
            for metric in wanted:
                assert isinstance(metric.of, Reading), "only readings are measured here"
                found[metric.name] = walk.read(metric.of)
    return found


def _running(counts: Tensor, order: IntArray) -> Tensor:
    """How many draws fall on the first k images of the order, k = 0 ... n, for each replicate."""
    ordered = counts.index_select(1, torch.from_numpy(np.ascontiguousarray(order)).to(counts.device))
    sums = torch.zeros((len(counts), counts.shape[1] + 1), dtype=torch.int32, device=counts.device)
    torch.cumsum(ordered, 1, dtype=torch.int32, out=sums[:, 1:])
    return sums


class _Walks:
    """The walks of all replicates from one side; see :class:`Walk`."""

    def __init__(self, walk: Walk, own: Tensor, other: Tensor) -> None:
        self._n, self._m = walk.n_positive, walk.n_negative
        self._tp = _at(own, walk.tp)
        self._fp = other[:, -1:] - _at(other, walk.n_negative - walk.fp)
        self._before = self._fp
        if not np.array_equal(walk.fp, walk.fp_before):
            self._before = other[:, -1:] - _at(other, walk.n_negative - walk.fp_before)
        self._gained = torch.diff(self._tp, dim=1, prepend=torch.zeros_like(self._tp[:, :1])).double()
        self._columns = self._tp.double(), self._fp.double()

    def read(self, reading: Reading) -> Tensor:
        """One value for each replicate."""
        tp, fp = self._columns
        if isinstance(reading, RocArea):
            pairs = 2.0 * self._n * self._m
            return (pairs - (self._gained * (self._fp + self._before)).sum(1)) / pairs
        if isinstance(reading, PrecisionArea):
            flagged = torch.add(tp, fp * reading.negative_weight(self._n, self._m))
            # nothing flagged means nothing gained: any number but zero will do
            precision = tp / flagged.clamp_(min=torch.finfo(torch.float64).tiny)
            return (self._gained * precision).sum(1) / self._n
        if isinstance(reading, FprAtTpr):
            step = _first(self._tp, least_count(reading.tpr, self._n), right=False)
            return fp.gather(1, step)[:, 0] / self._m
        passed = _first(self._fp, most_count(reading.fpr, self._m), right=True)
        reached = tp.gather(1, (passed - 1).clamp(min=0)) / self._n
        return torch.where(passed > 0, reached, 0.0)[:, 0]


def _at(sums: Tensor, images: FloatArray) -> Tensor:
    return sums.index_select(1, torch.from_numpy(images.astype(np.int64)).to(sums.device))


def _first(rows: Tensor, count: float, *, right: bool) -> Tensor:
    wanted = torch.full((len(rows), 1), int(count), dtype=rows.dtype, device=rows.device)
    return torch.searchsorted(rows, wanted, right=right)
