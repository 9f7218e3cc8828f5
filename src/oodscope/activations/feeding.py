"""Feeding: images become batches on the network's device, made ahead of the network and in order."""

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.lanes import Job, Lane, ProcessLane, ThreadLane
from oodscope.activations.store.packs import find_pack
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import ahead, threads
from oodscope.execution.workers import Workers, session_workers, worker_session
from oodscope.models.classifier.classifier import Classifier

Rows = NDArray[np.int64]

PROBED = 6
"""Batches from which on threads are compared, on the first of them."""

START_SECONDS = 1.5
"""What starting processes may cost; only who saves more than that starts them."""

FEWER = 1.1
"""How much faster half of the processes must be before the others are left idle; less is noise."""

_log = logging.getLogger(__name__)


def feed(classifier: Classifier, images: ImageSet, batches: Sequence[Rows]) -> Generator[Tensor, None, None]:
    """Batches of some rows of a set, prepared and on the classifier's device, while the network works on others.

    Who decodes is measured on the first images: one thread, several, or processes that write into shared memory; the
    processes serve the whole run (``worker_session``). What a batch holds does not depend on who made it: the decoding
    to bytes is shared out, and the numbers come from these on the device. Where somebody has packed all these images
    (``oodscope data pack``), nothing is decoded. A transform that is not ours (``Preprocess``) runs in threads of this
    process, one where it cannot be compared.
    """
    preprocess = classifier.transform
    if not isinstance(preprocess, Preprocess):
        yield from _transformed(classifier, images, batches)
        return
    places = [images.rows[rows] for rows in batches]
    pack = find_pack(images, preprocess, np.concatenate(places)) if places else None
    if pack is not None:
        yield from pack.batches(places, classifier.device)
        return
    feeding = _Feed(preprocess, images, batches, classifier.device, preprocess.normalise)
    with worker_session(), closing(feeding) as stream:
        yield from stream


def crops(preprocess: Preprocess, images: ImageSet, batches: Sequence[Rows]) -> Generator[Tensor, None, None]:
    """Batches of bytes ``[N, size, size, C]`` as ``feed`` makes them before it normalises, on the CPU."""
    with worker_session(), closing(_Feed(preprocess, images, batches, torch.device("cpu"), torch.clone)) as stream:
        yield from stream


class _Feed:
    """One stream of batches; see ``feed``.

    Parameters
    ----------
    finish : what is made of the bytes of a batch; it copies them, because their place is filled anew.
    """

    def __init__(
        self,
        preprocess: Preprocess,
        images: ImageSet,
        batches: Sequence[Rows],
        device: torch.device,
        finish: Callable[[Tensor], Tensor],
    ) -> None:
        self.preprocess, self.images, self.device, self.finish = preprocess, images, device, finish
        self.left = deque(batches)
        self.largest = max(map(len, batches), default=0)
        self.lanes: list[Lane] = []

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def __iter__(self) -> Iterator[Tensor]:
        workers = session_workers(start=False)
        lane: Lane = self._threads(threads())
        if (workers is None or workers.gain is None) and len(self.left) >= PROBED:
            lane = yield from self._faster([self._threads(1), lane])
            workers = workers or self._worth_starting(lane)
        if workers is not None and workers.starting:
            # nobody waits: threads begin, and processes take over when they are there
            yield from self._run(lane, until=lambda: not workers.starting)
        if workers is not None and workers.ready and self.left and (processes := self._processes(workers)) is not None:
            if workers.gain is None and len(self.left) >= 2 * processes.slots:
                lane = yield from self._measured(workers, processes, lane)
            elif workers.gain is None or workers.gain > 1:
                lane = processes
        _log.debug("%s: %d batches by %s", self.images.name, len(self.left), lane)
        yield from self._run(lane)

    def _threads(self, count: int) -> ThreadLane:
        lane = ThreadLane(self.preprocess, self.images, self.largest, self.device, count)
        self.lanes.append(lane)
        return lane

    def _processes(self, workers: Workers) -> ProcessLane | None:
        lane = self._portable() and ProcessLane.on(workers, self.preprocess, self.images, self.largest, self.device)
        if not lane:
            return None
        self.lanes.append(lane)
        return lane

    def _portable(self) -> bool:
        return self.images.source.excerpt(self.images.rows[self.left[0][:1]]) is not None

    def _worth_starting(self, lane: Lane) -> Workers | None:
        """Processes, if what is left takes this lane much longer than starting them."""
        seconds = sum(map(len, self.left)) / lane.rate
        return session_workers(start=seconds > 2 * START_SECONDS and self._portable())

    def _measured(self, workers: Workers, processes: ProcessLane, others: Lane) -> Generator[Tensor, None, Lane]:
        """The fastest of all processes, half of them, and what came before, each timed on a ring full of batches."""
        # the first images wake memory, files and decoders: who is timed on them seems slow
        yield from self._timed(processes, min(processes.slots, len(self.left) // 4))
        yield from self._timed(processes, processes.slots)
        full, workers.limit = processes.rate, max(1, workers.count // 2)
        if workers.count > 1 and len(self.left) >= 2 * processes.slots:
            yield from self._timed(processes, processes.slots)
            half = processes.rate
        else:
            half = 0.0
        if full * FEWER >= half:
            workers.limit, processes.rate = workers.count, full
        workers.gain = processes.rate / others.rate if others.rate else np.inf
        return processes if workers.gain > 1 else others

    def _faster(self, lanes: Sequence[Lane]) -> Generator[Tensor, None, Lane]:
        """The lane that decodes fastest, each timed on a batch, which is handed on."""
        for lane in lanes:
            yield from self._timed(lane, 1)
        return max(lanes, key=lambda lane: lane.rate)

    def _timed(self, lane: Lane, batches: int) -> Iterator[Tensor]:
        started, count = perf_counter(), 0
        work = []
        for slot in range(min(batches, lane.slots, len(self.left))):
            rows = self.left.popleft()
            work.append((slot, rows, lane.start(rows, slot)))
            count += len(rows)
        for _, _, job in work:
            job.wait()
        lane.rate = count / max(perf_counter() - started, 1e-9)
        for slot, rows, _ in work:
            yield self._finished(lane, slot, len(rows))

    def _run(self, lane: Lane, until: Callable[[], bool] = lambda: False) -> Iterator[Tensor]:
        """Batches by one lane: all that are left, or those begun before ``until``."""
        free, begun = deque(range(lane.slots)), deque[tuple[int, int, Job]]()
        while begun or (self.left and not until()):
            while free and self.left and not until():
                rows, slot = self.left.popleft(), free.popleft()
                begun.append((slot, len(rows), lane.start(rows, slot)))
            slot, count, job = begun.popleft()
            job.wait()
            batch = self._finished(lane, slot, count)
            free.append(slot)
            yield batch

    def _finished(self, lane: Lane, slot: int, count: int) -> Tensor:
        return self.finish(lane.take(slot, count))


def _transformed(classifier: Classifier, images: ImageSet, batches: Sequence[Rows]) -> Iterator[Tensor]:
    # a transform that cannot be compared may also not bear two threads at once
    workers = 1 if classifier.uncached_reason else threads()

    def load(piece: Rows) -> Tensor:
        return classifier.prepare(images.pictures(piece))

    shares = [cut(batch, -(-len(batch) // workers)) for batch in batches]
    every = (piece for batch in shares for piece in batch)
    with closing(ahead(every, load, depth=workers, workers=workers)) as pieces:
        for batch in shares:
            ready = [next(pieces) for _ in batch]
            # a single one is the batch, without a copy
            yield (ready[0] if len(ready) == 1 else torch.cat(ready)).to(classifier.device)


def cut(rows: Rows, size: int) -> list[Rows]:
    """Consecutive pieces of at most ``size`` rows."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]
