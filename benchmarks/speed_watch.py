"""Who watches while speed.py times: how busy the GPU is, and how long each stage takes."""

import shutil
import subprocess
import time
from contextlib import contextmanager
from threading import Thread
from typing import Any


class GpuBusy:
    """Share of the time that the GPU was busy inside the block, by ``nvidia-smi``; ``None`` where there is none."""

    def __init__(self, device: str) -> None:
        self.share: float | None = None
        self._watched = device.startswith("cuda") and shutil.which("nvidia-smi") is not None

    def __enter__(self) -> "GpuBusy":
        if self._watched:
            query = [
                "nvidia-smi",
                "--query-gpu=utilization.gpu",
                "--format=csv,noheader,nounits",
                "-lms",
                "200",
                "-i",
                "0",
            ]
            self._process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
            self._said: list[str] = []
            self._reader = Thread(target=lambda: self._said.extend(self._process.stdout or ()), daemon=True)
            self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._watched:
            self._process.terminate()
            self._reader.join(timeout=5)
            values = [int(line) for line in self._said if line.strip().isdigit()]
            self.share = sum(values) / len(values) / 100 if values else None


class Stages:
    """A ``Progress`` that notes how long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def stage(self, name: str, total: int) -> Any:
        @contextmanager
        def timed() -> Any:
            started = time.perf_counter()
            try:
                yield lambda finished, remark=None: None
            finally:
                kind = name.split(" ", maxsplit=1)[0]
                self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - started

        return timed()
