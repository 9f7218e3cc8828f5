"""Lanes: who decodes images into a ring of buffers of bytes, threads of this process or other processes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess, fill_shared
from oodscope.execution.worker import UnknownHereError
from oodscope.execution.workers import Workers

Rows = NDArray[np.int64]

RING = 256 * 2**20
"""Bytes of decoded pixels that may wait for the network, of processes."""

MOST_SLOTS, FEWEST_SLOTS = 16, 3

PIECE_BYTES = 192 * 2**10
"""Decoded bytes per call of a process: long enough to hide the call, short enough to share out a batch."""

FEWEST_IMAGES = 16
"""Per call of a process: each call costs this one some 0.1 ms, while it launches the network."""


class Job:
    """The pieces of one batch being decoded; ``wait`` ends when all are, and raises what went wrong with the first."""

    def __init__(self, futures: Sequence["Future[Any]"], again: Sequence[Any] = ()) -> None:
        self.futures, self.again = futures, again

    def wait(self) -> None:
        for place, future in enumerate(self.futures):
            try:
                future.result()
            except UnknownHereError:
                # the caller's own class: another process cannot have it, this one can
                self.again[place]()


class Lane(ABC):
    """A ring of ``slots`` buffers for batches of crops, and somebody who fills them.

    Parameters
    ----------
    preprocess : what crops images.
    images : whose rows are decoded.
    largest : images in the largest batch.
    device : where batches go; a CUDA device copies from pinned memory while others are decoded.
    """

    slots: int

    def __init__(self, preprocess: Preprocess, images: ImageSet, largest: int, device: torch.device) -> None:
        self.preprocess, self.images, self.device = preprocess, images, device
        self.crop = (preprocess.size, preprocess.size, len(preprocess.mean))
        self.bytes = largest * math.prod(self.crop)
        self.rate = 0.0
        self._copied: dict[int, torch.cuda.Event] = {}
        # copies wait for nothing that the network does, and the network for no copy but its own
        self._copies = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @abstractmethod
    def memory(self, slot: int) -> Tensor:
        """The bytes of a slot."""

    @abstractmethod
    def _fill(self, rows: Rows, slot: int, first: int) -> Job: ...

    @abstractmethod
    def close(self) -> None:
        """Give back what the lane holds; work that nobody took is dropped."""

    def crops(self, slot: int, count: int) -> NDArray[np.uint8]:
        """The first ``count`` crops of a slot, to be written."""
        return self.memory(slot)[: count * math.prod(self.crop)].view(-1, *self.crop).numpy()

    def start(self, rows: Rows, slot: int, first: int = 0) -> Job:
        """Begin to decode rows into a slot, from the ``first`` on, once the batch before has left it."""
        if slot in self._copied:
            self._copied.pop(slot).synchronize()
        return self._fill(rows, slot, first)

    def take(self, slot: int, count: int) -> Tensor:
        """The crops ``[count, size, size, C]`` of a slot, on the device; on the CPU they are the slot itself."""
        crops = self.memory(slot)[: count * math.prod(self.crop)].view(count, *self.crop)
        if self._copies is None:
            return crops.to(self.device)
        copied = self._copied[slot] = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._copies):
            moved = crops.to(self.device, non_blocking=True)
            copied.record()
        network = torch.cuda.current_stream(self.device)
        network.wait_event(copied)
        # its memory belongs to the stream of copies, which must not hand it out again while the network reads it
        moved.record_stream(network)
        return moved


class ThreadLane(Lane):
    """Threads of this process; each takes an equal share of a batch."""

    slots = 2

    def __init__(
        self, preprocess: Preprocess, images: ImageSet, largest: int, device: torch.device, count: int
    ) -> None:
        super().__init__(preprocess, images, largest, device)
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._ring: Tensor | None = None

    def __repr__(self) -> str:
        return f"{self.count} thread{'s' * (self.count > 1)}"

    def memory(self, slot: int) -> Tensor:
        if self._ring is None:
            self._ring = torch.empty(self.slots, self.bytes, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        return self._ring[slot]

    def _fill(self, rows: Rows, slot: int, first: int) -> Job:
        return self.fill(self.crops(slot, len(rows))[first:], rows[first:])

    def fill(self, crops: NDArray[np.uint8], rows: Rows) -> Job:
        """Begin to decode rows into ``crops``, wherever these lie."""
        self._pool = self._pool or ThreadPoolExecutor(self.count)
        share = max(1, -(-len(rows) // self.count))
        return Job(
            [
                self._pool.submit(self._decode, crops[start : start + share], rows[start : start + share])
                for start in range(0, len(rows), share)
            ]
        )

    def _decode(self, crops: NDArray[np.uint8], rows: Rows) -> None:
        self.preprocess.fill(crops, self.images.pictures(rows))

    def close(self) -> None:
        if self._pool is not None:
            # a caller that stops early must not wait for what nobody wants any more
            self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Made:
    """What processes have decoded so far: calls, images, and the seconds that they worked, summed over processes."""

    calls: int = 0
    images: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._lock = Lock()

    def note(self, images: int, future: "Future[Any]") -> None:
        """Count a call, once it has been answered."""
        if not future.cancelled() and future.exception() is None:
            with self._lock:
                self.calls += 1
                self.images += images
                self.seconds += future.result()

    def since(self, before: "Made") -> float:
        """Images per second of one process since ``before``, while it worked."""
        return (self.images - before.images) / max(self.seconds - before.seconds, 1e-9)


class ProcessLane(Lane):
    """The processes of a run, which write into memory that they share with this one."""

    def __init__(
        self,
        workers: Workers,
        preprocess: Preprocess,
        images: ImageSet,
        largest: int,
        device: torch.device,
        start: int,
        slots: int,
    ) -> None:
        super().__init__(preprocess, images, largest, device)
        self.workers, self.start_byte, self.slots = workers, start, slots
        self._pending: set[Future[Any]] = set()
        self.made = Made()
        self._ring = torch.frombuffer(workers.memory, dtype=torch.uint8, count=slots * self.bytes, offset=start)
        self._pinned = device.type == "cuda" and _register(self._ring)

    @classmethod
    def on(
        cls, workers: Workers, preprocess: Preprocess, images: ImageSet, largest: int, device: torch.device
    ) -> Self | None:
        """A lane with as much shared memory as is sensible; ``None`` if too little is free."""
        size = largest * preprocess.size**2 * len(preprocess.mean)
        slots = min(MOST_SLOTS, max(FEWEST_SLOTS, RING // size))
        start = workers.allocate(slots * size)
        return None if start is None else cls(workers, preprocess, images, largest, device, start, slots)

    def __repr__(self) -> str:
        return f"{self.workers.limit} processes"

    def memory(self, slot: int) -> Tensor:
        return self._ring[slot * self.bytes : (slot + 1) * self.bytes]

    def _fill(self, rows: Rows, slot: int, first: int) -> Job:
        size = math.prod(self.crop)
        share = max(FEWEST_IMAGES, min(-(-len(rows) // self.workers.limit), PIECE_BYTES // size))
        futures, again = [], []
        for begin in range(first, len(rows), share):
            piece = rows[begin : begin + share]
            where = self.start_byte + slot * self.bytes + begin * size
            source = self.images.source.excerpt(self.images.rows[piece])
            future = self.workers.submit(fill_shared, where, self.preprocess, source)
            future.add_done_callback(partial(self.made.note, len(piece)))
            futures.append(future)
            again.append(lambda piece=piece, begin=begin: self._decode_here(piece, slot, begin))
        self._pending = {future for future in self._pending if not future.done()} | set(futures)
        return Job(futures, again)

    def _decode_here(self, rows: Rows, slot: int, begin: int) -> None:
        size = math.prod(self.crop)
        place = self.memory(slot)[begin * size : (begin + len(rows)) * size]
        self.preprocess.fill(place.view(-1, *self.crop).numpy(), self.images.pictures(rows))

    def close(self) -> None:
        # nobody else may get this memory while somebody still writes to it
        wait([future for future in self._pending if not future.cancel()], timeout=60)
        for event in self._copied.values():
            event.synchronize()
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._ring.data_ptr())  # type: ignore[no-untyped-call]
        self.workers.release(self.start_byte, self.slots * self.bytes)


def _register(ring: Tensor) -> bool:
    """Pin shared memory, so that CUDA copies from it while the processor does other things; whether it could be."""
    status = torch.cuda.cudart().cudaHostRegister(ring.data_ptr(), ring.numel(), 0)  # type: ignore[no-untyped-call]
    return int(status) == 0
