"""Running: how far an evaluation has come, as it says itself while it runs."""

from dataclasses import dataclass

STALE_SECONDS = 20.0
"""Nothing heard for so long: the process was killed, its machine is gone, or the store is out of its reach."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """One evaluation that runs somewhere, as it last told a ``ResultStore``.

    Parameters
    ----------
    id : unique among all that ever ran.
    what : in words, such as ``evaluate resnet18_32 on cifar10``.
    host, process : where, to find it again.
    started, updated : seconds since 1970, by the clock of its host.
    stage, done, total : what it is busy with now, and how many of how many items are finished.
    """

    id: str
    what: str
    host: str
    process: int
    started: float
    updated: float
    stage: str = ""
    done: int = 0
    total: int = 0

    def stale(self, now: float) -> bool:
        """Whether nothing was heard of it for so long that it has probably ended without a word."""
        return now - self.updated > STALE_SECONDS
