"""Feeding: images become batches on the network's device, made ahead of the network and in order."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.gauge import Gauge
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

SAMPLE = 64
"""Images of it that one thread decodes, and as many that several do."""

START_SECONDS = 1.5
"""What starting processes may cost; only who saves more than that starts them."""

_log = logging.getLogger(__name__)


def feed(classifier: Classifier, images: ImageSet, batches: Sequence[Rows]) -> Generator[Tensor, None, None]:
    """Batches of some rows of a set, prepared and on the classifier's device, while the network works on others.

    Who decodes is measured on the first images: one thread, several, or processes that write into shared memory; the
    processes serve the whole run (``worker_session``). What a batch holds does not depend on who made it: the decoding
    to bytes is shared out, and the numbers come from these on the device. Where somebody has packed all these images
    (``oodscope data pack``), nothing is decoded. A transform that is not ours (``Preprocess``) runs in threads of this
    process, one where it cannot be compared.
    """
    with closing(open_feed(classifier, images, batches)) as stream:
        yield from stream


def crops(preprocess: Preprocess, images: ImageSet, batches: Sequence[Rows]) -> Generator[Tensor, None, None]:
    """Batches of bytes ``[N, size, size, C]`` as ``feed`` makes them before it normalises, on the CPU."""
    with closing(_Decoded(preprocess, images, batches, torch.device("cpu"), torch.clone)) as stream:
        yield from stream


class Feed(ABC):
    """One stream of batches; see ``feed``. Close it, whether or not it was read."""

    @abstractmethod
    def __iter__(self) -> Iterator[Tensor]: ...

    @abstractmethod
    def close(self) -> None:
        """Give back what the stream holds."""

    def begin(self) -> None:  # noqa: B027  # most have nothing to begin
        """Start on the first batches before anybody asks for them, if that is possible without a wait."""


def open_feed(classifier: Classifier, images: ImageSet, batches: Sequence[Rows], following: Feed | None = None) -> Feed:
    """The stream of these batches.

    Parameters
    ----------
    following : the stream that is read next. Its first batches are begun when none of this one is left to begin, so
        that neither decoders nor network wait where one set ends and the next begins.
    """
    preprocess = classifier.transform
    if not isinstance(preprocess, Preprocess):
        return _Made(_transformed(classifier, images, batches))
    places = [images.rows[rows] for rows in batches]
    pack = find_pack(images, preprocess, np.concatenate(places)) if places else None
    if pack is not None:
        return _Made(pack.batches(places, classifier.device))
    return _Decoded(preprocess, images, batches, classifier.device, preprocess.normalise, following)


class _Made(Feed):
    """Batches that somebody else makes, one by one as they are asked for."""

    def __init__(self, batches: Generator[Tensor, None, None]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Tensor]:
        return self._batches

    def close(self) -> None:
        self._batches.close()


def _never() -> bool:
    return False


class _Ring:
    """The slots of a lane that are free, and the batches that were begun in the others, in order."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.free = deque(range(lane.slots))
        self.begun = deque[tuple[int, int, Job]]()


class _Decoded(Feed):
    """Batches of decoded images.

    Parameters
    ----------
    finish : what is made of the bytes of a batch; it copies them, because their place is filled anew.
    following : the stream that is read next; see ``open_feed``.
    """

    def __init__(
        self,
        preprocess: Preprocess,
        images: ImageSet,
        batches: Sequence[Rows],
        device: torch.device,
        finish: Callable[[Tensor], Tensor],
        following: Feed | None = None,
    ) -> None:
        self.preprocess, self.images, self.device, self.finish = preprocess, images, device, finish
        self.following = following
        self.left = deque(batches)
        self.largest = max(map(len, batches), default=0)
        self.lanes: list[Lane] = []
        self._early: _Ring | None = None

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()
        self.lanes = []

    def begin(self) -> None:
        """Hand the first batches to the processes of the run, behind what they have to do; if they are at hand."""
        workers = session_workers(start=False)
        if self._early is not None or workers is None or workers.gain is None:
            return
        if (lane := self._processes(workers)) is not None:
            self._early = _Ring(lane)
            self._start(self._early)

    def __iter__(self) -> Iterator[Tensor]:
        with worker_session():
            yield from self._decoded()

    def _decoded(self) -> Iterator[Tensor]:
        if self._early is not None:
            yield from self._run(self._early)
            return
        workers = session_workers(start=False)
        lane, processes = self._threads(threads()), self._processes(workers)
        if (workers is None or workers.gain is None) and len(self.left) >= PROBED:
            lane = yield from self._faster(self._threads(1), lane, processes)
            workers = workers or self._worth_starting(lane)
        if workers is not None and workers.starting:
            # nobody waits: threads begin, and processes take over when they are there
            yield from self._run(_Ring(lane), until=lambda: not workers.starting)
        processes = processes or self._processes(workers)
        if processes is not None:
            # they are measured while they work, so that nobody waits for that either
            compared = lane.rate and processes.workers.gain is None
            slower = Gauge(processes.workers, processes, lane.rate) if compared else _never
            yield from self._run(_Ring(processes), until=slower)
        yield from self._run(_Ring(lane))

    def _threads(self, count: int) -> ThreadLane:
        lane = ThreadLane(self.preprocess, self.images, self.largest, self.device, count)
        self.lanes.append(lane)
        return lane

    def _processes(self, workers: Workers | None) -> ProcessLane | None:
        """Those of the session, if they are there, not known to be slower, and can read these images."""
        if workers is None or not workers.ready or not self.left or (workers.gain or np.inf) <= 1:
            return None
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

    def _faster(
        self, one: ThreadLane, several: ThreadLane, processes: ProcessLane | None
    ) -> Generator[Tensor, None, ThreadLane]:
        """The faster of two lanes, each timed on a few images of a batch; processes decode its others, if there are."""
        rows, done = self.left.popleft(), 0
        holder = processes or several
        crops = holder.crops(0, len(rows))
        for lane in (one, several):
            share = slice(done, done + min(SAMPLE, len(rows) // 4 or 1))
            began = perf_counter()
            lane.fill(crops[share], rows[share]).wait()
            lane.rate = len(rows[share]) / max(perf_counter() - began, 1e-9)
            done += len(rows[share])
        best = max(one, several, key=lambda lane: lane.rate)
        others = processes.start(rows, 0, done) if processes else best.fill(crops[done:], rows[done:])
        others.wait()
        yield self._finished(holder, 0, len(rows))
        return best

    def _run(self, ring: _Ring, until: Callable[[], bool] = _never) -> Iterator[Tensor]:
        """Batches by one lane: all that are left, or those begun before ``until``."""
        if self.left:
            _log.debug("%s: %d batches by %s", self.images.name, len(self.left), ring.lane)
        while ring.begun or (self.left and not until()):
            self._start(ring, until)
            if not self.left and self.following is not None:
                self.following.begin()
            slot, count, job = ring.begun.popleft()
            job.wait()
            batch = self._finished(ring.lane, slot, count)
            ring.free.append(slot)
            yield batch

    def _start(self, ring: _Ring, until: Callable[[], bool] = _never) -> None:
        """Begin as many batches as there are free slots."""
        while ring.free and self.left and not until():
            rows, slot = self.left.popleft(), ring.free.popleft()
            ring.begun.append((slot, len(rows), ring.lane.start(rows, slot)))

    def _finished(self, lane: Lane, slot: int, count: int) -> Tensor:
        return self.finish(lane.take(slot, count))


def _transformed(classifier: Classifier, images: ImageSet, batches: Sequence[Rows]) -> Generator[Tensor, None, None]:
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
