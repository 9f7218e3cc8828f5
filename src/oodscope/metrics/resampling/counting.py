"""The bootstrap on the processor: counts of draws, summed in the order of one sort, for one detector and OOD set.

A replicate is never sorted: how often each image was drawn, summed in the order of the one sort, takes the place of
the counts of the ranking. One pass down the images of each sample, in pieces that a processor's caches hold and for
many replicates side by side, serves every reading of the catalogue; any other metric gets the whole walks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.metric import Metric
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.readings import Reading
from oodscope.metrics.ranking.walk import Positive, Walk
from oodscope.metrics.resampling.draws import Counts, Drawn, Workspace
from oodscope.metrics.resampling.tallies import Piece, RocTally, Tally, tally_of
from oodscope.metrics.scores import FloatArray, IntArray

LANES = 4
"""Replicates in a 64-bit word; their number is a multiple of it. One addition of words adds the counts of all four,
and none spills into the next as long as sums stay below 65,536."""

_PIECE = 2**16
"""Numbers in an array of the inner loop: 512 kB, of which the caches hold several."""

_TABLE = 2**21
"""Numbers in a table of running sums: 16 MB."""

_HELD = 2**16 - 1
"""The largest sum of a lane."""

Steps = NDArray[np.intp]


class IdSums(NamedTuple):
    """The draws of a detector's ID images, ``[step, replicate]``; its OOD sets share them.

    Parameters
    ----------
    up_to : how many fall on the first k distinct scores from below, k = 0 ...
    above : how many fall on the others.
    """

    up_to: FloatArray
    above: FloatArray


@dataclass(frozen=True)
class Pair:
    """One detector on one OOD set: its images in the order of their scores.

    Parameters
    ----------
    ranking : of the ID and the OOD scores.
    id_order, ood_order : the ID images from the lowest score up, the OOD images from the highest score down.
    """

    ranking: Ranking
    id_order: IntArray
    ood_order: IntArray

    def readings(
        self, id_sums: IdSums, drawn: Drawn, metrics: Sequence[Metric], workspace: Workspace
    ) -> dict[str, FloatArray]:
        """Metrics that are read off a walk, of the replicates whose draws are counted."""
        replicates = drawn.counts.shape[1]
        tallies: dict[Positive, dict[str, Tally]] = {"id": {}, "ood": {}}
        for metric in metrics:
            assert isinstance(metric.of, Reading) and metric.positive is not None, "readings are read off a walk"
            walk = self.ranking.walk(metric.positive)
            tallies[metric.positive][metric.name] = tally_of(metric.of, walk, replicates)
        # negatives tied with a step are wanted apart by the area under the ROC curve only
        ties = {side: any(isinstance(each, RocTally) for each in own.values()) for side, own in tallies.items()}
        met = _Met(self.ranking, workspace, replicates, ties=ties["id"]) if tallies["id"] else None
        for piece in self._ood_pieces(drawn, id_sums.above, met, workspace, ties=ties["ood"]):
            for tally in tallies["ood"].values():
                tally.add(piece, workspace)
        if met is not None:
            for piece in _id_pieces(id_sums.up_to, met, workspace):
                for tally in tallies["id"].values():
                    tally.add(piece, workspace)
        return {name: tally.value() for each in tallies.values() for name, tally in each.items()}

    def _ood_pieces(
        self, drawn: Drawn, above: FloatArray, met: "_Met | None", workspace: Workspace, *, ties: bool
    ) -> Iterator[Piece]:
        """The walk from the OOD side; ``met`` keeps of it what the walk from the ID side will need."""
        walk, steps = self.ranking.walk("ood"), self.ranking.walk("id").tp
        fp_at, before_at = (_steps_up_to(steps, walk.n_negative - each) for each in (walk.fp, walk.fp_before))
        tied = ties and not np.array_equal(fp_at, before_at)
        for start, gained, tp in running(drawn, self.ood_order, walk.tp, workspace):
            if met is not None:
                met.keep(start, tp)
            stop = start + len(tp)
            fp = above.take(fp_at[start:stop], axis=0, out=workspace.array("fp", tp.shape), mode="clip")
            before = fp
            if tied:
                out = workspace.array("fp_before", tp.shape)
                before = above.take(before_at[start:stop], axis=0, out=out, mode="clip")
            weighted = np.multiply(gained, tp, out=workspace.array("weighted", tp.shape))
            yield Piece(gained, tp, fp, before, weighted)

    def others(self, id_counts: Counts, ood_counts: Counts, metrics: Sequence[Metric]) -> dict[str, FloatArray]:
        """Metrics that are computed from whole walks."""
        values = {metric.name: np.empty(id_counts.shape[1]) for metric in metrics}
        for start in range(0, id_counts.shape[1], LANES) if metrics else ():
            block = slice(start, start + LANES)
            walks = self._walks(np.ascontiguousarray(id_counts[:, block]), np.ascontiguousarray(ood_counts[:, block]))
            for metric in metrics:
                assert metric.of is not None and metric.positive is not None, "metrics of a walk are computed from it"
                values[metric.name][block] = metric.of(walks[metric.positive])
        return values

    def _walks(self, id_counts: Counts, ood_counts: Counts) -> dict[Positive, Walk]:
        """The whole walks of a few replicates, for metrics other than readings."""
        id_sums, ood_sums = (
            np.vstack([np.zeros(counts.shape[1]), np.cumsum(counts[order], axis=0, dtype=np.float64)])
            for counts, order in ((id_counts, self.id_order), (ood_counts, self.ood_order))
        )
        return {
            "id": _whole(self.ranking.walk("id"), id_sums, ood_sums),
            "ood": _whole(self.ranking.walk("ood"), ood_sums, id_sums),
        }


def _whole(walk: Walk, own: FloatArray, other: FloatArray) -> Walk:
    """The replicates of a walk, given the running sums of the positives along it and of the negatives against it."""

    def left(met: FloatArray) -> FloatArray:
        return np.ascontiguousarray((walk.n_negative - other[(walk.n_negative - met).astype(np.intp)]).T)

    tp = np.ascontiguousarray(own[walk.tp.astype(np.intp)].T)
    return Walk(tp, left(walk.fp), left(walk.fp_before), walk.n_positive, walk.n_negative)


class _Met:
    """What the walk from the ID side meets of the OOD images, kept while these pass from the highest score down.

    At the k-th ID score from below, the draws at or below it are all less those above it. As the ID score falls, the
    latter grow, so each piece of the OOD images fills a stretch of the ID steps, the last ones first.
    """

    def __init__(self, ranking: Ranking, workspace: Workspace, replicates: int, *, ties: bool) -> None:
        own, other = ranking.walk("id"), ranking.walk("ood").tp
        self._n = float(ranking.n_ood)
        self._places = [_steps_up_to(other, self._n - each) for each in (own.fp, own.fp_before)]
        if not ties or np.array_equal(self._places[0], self._places[1]):
            self._places.pop()
        self._turned = [places[::-1].copy() for places in self._places]
        shape = (own.tp.size, replicates)
        self._tables = [workspace.array(f"met {k}", shape) for k in range(len(self._places))]
        for table, places in zip(self._tables, self._places):
            table[places == 0] = self._n
        self.fp, self.fp_before = self._tables[0], self._tables[-1]

    def keep(self, start: int, tp: FloatArray) -> None:
        """The draws of the OOD images up to each of the steps from ``start`` on."""
        for table, places, turned in zip(self._tables, self._places, self._turned):
            # places fall along the ID steps; turned round they rise
            last, first = places.size - np.searchsorted(turned, [start, start + len(tp)], side="right")
            part = tp.take(places[first:last] - (start + 1), axis=0, out=table[first:last], mode="clip")
            np.subtract(self._n, part, out=part)


def _id_pieces(id_sums: FloatArray, met: _Met, workspace: Workspace) -> Iterator[Piece]:
    """The walk from the ID side, from tables of running sums."""
    size = max(1, _PIECE // id_sums.shape[1])
    for start in range(0, len(id_sums) - 1, size):
        stop = min(start + size, len(id_sums) - 1)
        tp = id_sums[start + 1 : stop + 1]
        gained = np.subtract(tp, id_sums[start:stop], out=workspace.array("gained", tp.shape))
        weighted = np.multiply(gained, tp, out=workspace.array("weighted", tp.shape))
        yield Piece(gained, tp, met.fp[start:stop], met.fp_before[start:stop], weighted)


def replicates_of(
    pairs: Mapping[str, Pair], drawn: Mapping[str | None, Drawn], metrics: Sequence[Metric], workspace: Workspace
) -> dict[str, dict[str, FloatArray]]:
    """By OOD set every metric of one detector, of the replicates whose draws are counted (``None``: the ID sample)."""
    readings = [metric for metric in metrics if isinstance(metric.of, Reading)]
    others = [metric for metric in metrics if metric not in readings]
    values: dict[str, dict[str, FloatArray]] = {name: {} for name in pairs}
    if readings:
        id_sums = _id_sums(next(iter(pairs.values())), drawn[None], workspace)
        for name, pair in pairs.items():
            values[name].update(pair.readings(id_sums, drawn[name], readings, workspace))
    for name, pair in pairs.items():
        values[name].update(pair.others(drawn[None].counts, drawn[name].counts, others))
    return values


def _id_sums(pair: Pair, drawn: Drawn, workspace: Workspace) -> IdSums:
    walk = pair.ranking.walk("id")
    shape = (walk.tp.size + 1, drawn.counts.shape[1])
    up_to = workspace.array("id_sums", shape)
    up_to[0] = 0.0
    for start, _, tp in running(drawn, pair.id_order, walk.tp, workspace):
        up_to[start + 1 : start + 1 + len(tp)] = tp
    return IdSums(up_to, np.subtract(walk.n_positive, up_to, out=workspace.array("above", shape)))


def replicates_together(n_id: int) -> int:
    """How many replicates one pass takes: as many as leave the tables of running sums small."""
    return int(np.clip(_TABLE // (n_id + 1) // LANES * LANES, 4 * LANES, 32 * LANES))


def pairs_of(id_scores: FloatArray, ood_sets: Mapping[str, FloatArray]) -> dict[str, Pair]:
    """One detector on each of its OOD sets."""
    id_order = np.argsort(id_scores)
    return {
        name: Pair(Ranking(id_scores, scores), id_order, np.argsort(scores)[::-1].copy())
        for name, scores in ood_sets.items()
    }


def running(
    drawn: Drawn, order: IntArray, ends: FloatArray, workspace: Workspace
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """From step to step, how many draws a sample gains and how many there are so far: ``(first step, gained, sum)``.

    Parameters
    ----------
    order : the images in the order of the steps.
    ends : how many images there are up to each step; equal scores make one step.
    """
    images, replicates = drawn.counts.shape
    most = max(1, drawn.most)
    size = min(max(1, _PIECE // replicates), max(1, _HELD // 2 // most))
    steps = ends.astype(np.intp)
    firsts = range(0, images, size)
    stops = np.searchsorted(steps, [min(first + size, images) for first in firsts], side="right").tolist()
    so_far, before, start = np.zeros(replicates, dtype=np.int64), np.zeros(replicates), 0
    for first, stop in zip(firsts, stops):
        piece = order[first : first + size]
        out = workspace.array("drawn", (len(piece), replicates), np.uint16)
        sums = drawn.counts.take(piece, axis=0, out=out, mode="clip")
        gained = workspace.array("gained", (stop - start, replicates))
        tp = workspace.array("tp", gained.shape)
        distinct = stop - start == len(piece)
        if distinct:
            np.copyto(gained, sums)
        lifted = _lifted(so_far, len(piece) * most)
        sums[0] += (so_far - lifted).astype(np.uint16)
        words = sums.view(np.uint64)
        np.cumsum(words, axis=0, out=words)
        so_far = lifted + sums[-1].astype(np.int64)
        if stop > start:
            if not distinct:
                out = workspace.array("stepped", gained.shape, np.uint16)
                sums = sums.take(steps[start:stop] - first - 1, axis=0, out=out, mode="clip")
            np.copyto(tp, sums)
            if np.any(lifted):
                tp += lifted
            # a step may have begun in the piece before
            np.subtract(tp[0], before, out=gained[0])
            if not distinct:
                np.subtract(tp[1:], tp[:-1], out=gained[1:])
            before = tp[-1].copy()
            yield start, gained, tp
        start = stop


def _lifted(so_far: IntArray, room: int) -> IntArray:
    """What is left out of the draws so far, so that lanes hold the rest and ``room`` more.

    Mostly that is nothing, or one number for all replicates, which differ little: adding it is quick.
    """
    for lifted in (np.zeros((), dtype=np.int64), so_far.min()):
        if int(so_far.max() - lifted) + room <= _HELD:
            return np.asarray(lifted)
    return so_far


def _steps_up_to(ends: FloatArray, images: FloatArray) -> Steps:
    """How many steps so many images make."""
    return np.searchsorted(ends, images, side="right")
