"""Audit: one line for every submission, whatever became of it, and what quotas are counted from."""

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oodscope.base.errors import printable
from oodscope.serve.rates import Buckets, Rate
from oodscope.serve.submitters import SERVER

_LOG = logging.getLogger("oodscope.serve")
DAY = 86_400.0
STRANGERS = Rate(per_second=0.1, burst=60)
"""Lines about requests without a token: those who have none shall not fill the disk."""


class Audit:
    """The trail ``.server/audit.jsonl`` of a board, which only grows, and the same line in the log."""

    def __init__(self, entries: Path) -> None:
        self.path = entries / SERVER / "audit.jsonl"
        self._strangers = Buckets(STRANGERS)
        self._left_out = 0

    def write(
        self,
        submitter: str,
        client: str,
        status: int,
        entry: str,
        seconds: float,
        reason: str = "",
        when: str | None = None,
    ) -> None:
        """Add a line: who, from where, what became of it, and why.

        Of requests without a token only some are written down, with the number of those left out since the last.
        """
        if not submitter and self._strangers.take(""):
            self._left_out += 1
            return
        line = {
            "time": when or datetime.now(UTC).isoformat(timespec="seconds"),
            "submitter": submitter,
            "client": client,
            "status": status,
            "entry": entry,
            "seconds": round(seconds, 3),
            "reason": printable(reason)[:500],
        }
        if not submitter and self._left_out:
            line["left_out"], self._left_out = self._left_out, 0
        _LOG.info("submission: %s", " ".join(f"{name}={value!r}" for name, value in line.items() if value))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # one write of one line: lines of two processes do not mix
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, json.dumps(line).encode() + b"\n")
        finally:
            os.close(handle)

    def accepted(self) -> Iterator[tuple[str, str, float]]:
        """Of every entry that was accepted its id, who submitted it, and when; a damaged line costs only itself."""
        if not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for line in lines:
                if b'"status": 201' not in line:
                    continue
                try:
                    told: Any = json.loads(line)
                    if told["status"] == 201:
                        yield str(told["entry"]), str(told["submitter"]), seconds_of(told["time"])
                except (ValueError, LookupError, TypeError, RecursionError):
                    _LOG.warning("%s: a damaged line is left out", self.path)


def seconds_of(when: str) -> float:
    """A time of the trail or of a stamp, in seconds as of :func:`time.time`."""
    return datetime.fromisoformat(when).timestamp()


class DailyQuota:
    """How many entries each submitter has had accepted in the last 24 hours, by any server of the board."""

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self.most = most
        self._clock = clock
        self._accepted: dict[str, deque[float]] = {}

    def full(self, submitter: str) -> bool:
        """Whether no more is accepted from this submitter now."""
        times = self._accepted.setdefault(submitter, deque())
        while times and times[0] < self._clock() - DAY:
            times.popleft()
        return len(times) >= self.most

    def count(self, submitter: str, when: float | None = None) -> None:
        """One more was accepted; in the order of time."""
        now = self._clock()
        when = now if when is None else min(when, now)
        if when >= now - DAY:
            self._accepted.setdefault(submitter, deque()).append(when)
