"""Gauge: how many processes decode fastest, measured while they decode."""

from collections.abc import Generator
from dataclasses import replace

from oodscope.activations.lanes import ProcessLane
from oodscope.execution.workers import Workers

FEWER = 1.1
"""How much faster half of the processes must be before the others are left idle; less is noise."""

UNCOUNTED, COUNTED = 2, 3
"""Calls per process that pass before a measurement begins, and that it takes.

The first images wake memory, files and decoders: who is timed on them seems slow. And calls that wait in a process when
its number changes belong to the number before.
"""


class Gauge:
    """Judges the processes of a run by the seconds that each call takes them, while the network works.

    First all of them, then half (two may share what one needs alone: a core, a disk), and the faster number stays.
    Nobody waits: the only cost is that some images are decoded by half of the processes. What counts is how fast they
    *can* decode (the number of processes times the images per second of one while it works), so a network that is
    slower than they are does not make them look slow.

    Parameters
    ----------
    workers : the processes; ``limit`` and ``gain`` are set.
    lane : through which they decode.
    otherwise : images per second of threads; 0 where nobody has measured them.
    """

    def __init__(self, workers: Workers, lane: ProcessLane, otherwise: float) -> None:
        self.workers, self.lane, self.otherwise = workers, lane, otherwise
        self._steps = self._measured()

    def __call__(self) -> bool:
        """Whether threads are faster, which nobody knows at first; asked again and again."""
        next(self._steps, None)
        return self.workers.gain is not None and self.workers.gain <= 1

    def _measured(self) -> Generator[None, None, None]:
        workers = self.workers
        workers.limit = workers.count  # somebody before may have stopped in the middle
        full = yield from self._rate()
        workers.limit = max(1, workers.count // 2)
        half = (yield from self._rate()) if workers.limit < workers.count else 0.0
        if full * FEWER >= half:
            workers.limit, half = workers.count, full
        workers.gain = half / self.otherwise if self.otherwise else float("inf")

    def _rate(self) -> Generator[None, None, float]:
        """Images per second that the processes can decode, once enough calls were answered."""
        calls, limit = self.lane.made.calls, self.workers.limit
        while self.lane.made.calls < calls + UNCOUNTED * self.workers.count:
            yield
        before = replace(self.lane.made)
        while self.lane.made.calls < before.calls + COUNTED * limit:
            yield
        return limit * self.lane.made.since(before)
