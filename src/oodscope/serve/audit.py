"""Audit: one line for every submission, whatever became of it, and what quotas are counted from."""

import json
import logging
import os
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from oodscope.base.errors import printable
from oodscope.serve.submitters import SERVER

_LOG = logging.getLogger("oodscope.serve")
DAY = 86_400.0


class Audit:
    """The trail ``.server/audit.jsonl`` of a board, which only grows, and the same line in the log."""

    def __init__(self, entries: Path) -> None:
        self.path = entries / SERVER / "audit.jsonl"

    def write(self, submitter: str, client: str, status: int, entry: str, seconds: float, reason: str = "") -> None:
        """Add a line: who, from where, what became of it, and why."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "submitter": submitter,
            "client": client,
            "status": status,
            "entry": entry,
            "seconds": round(seconds, 3),
            "reason": printable(reason)[:500],
        }
        _LOG.info("submission: %s", " ".join(f"{name}={value!r}" for name, value in line.items() if value))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # one write of one line: lines of two processes do not mix
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, json.dumps(line).encode() + b"\n")
        finally:
            os.close(handle)


class DailyQuota:
    """How many entries each submitter has had accepted in the last 24 hours of this server."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._accepted: dict[str, deque[float]] = {}

    def full(self, submitter: str) -> bool:
        """Whether no more is accepted from this submitter now."""
        times = self._accepted.setdefault(submitter, deque())
        while times and times[0] < monotonic() - DAY:
            times.popleft()
        return len(times) >= self.most

    def count(self, submitter: str) -> None:
        """One more was accepted."""
        self._accepted.setdefault(submitter, deque()).append(monotonic())
