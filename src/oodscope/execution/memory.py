"""How much memory a piece of work takes at its worst."""

import os
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

_STATM = Path("/proc/self/statm")
_SECONDS = 0.002


class PeakMemory:
    """Watches memory inside a ``with`` block; afterwards ``mib`` is the rise at its worst.

    On the CPU it is the anonymous memory of the process, sampled every two milliseconds: memory maps do not
    count, and what an earlier block left for reuse is not seen. On CUDA it is the allocator's own record.
    ``None`` where the system does not say.

    Parameters
    ----------
    device : ``"cuda"`` devices are asked themselves; for all others the process is watched.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.mib: float | None = None
        self._before = self._peak = 0
        self._done = Event()
        self._watcher: Thread | None = None

    def __enter__(self) -> Self:
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(self.device)
            self._before = torch.cuda.memory_allocated(self.device)
        elif _STATM.exists():
            self._before = self._peak = _anonymous()
            self._watcher = Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.device.startswith("cuda"):
            import torch

            self.mib = (torch.cuda.max_memory_allocated(self.device) - self._before) / 2**20
        elif self._watcher is not None:
            self._done.set()
            self._watcher.join()
            self.mib = (max(self._peak, _anonymous()) - self._before) / 2**20

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS):
            self._peak = max(self._peak, _anonymous())


def _anonymous() -> int:
    _, resident, shared, *_ = _STATM.read_text().split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
