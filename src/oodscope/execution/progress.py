"""The progress sink: long work reports to it and does not know who listens."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol


class Advance(Protocol):
    """Called with the number of items just finished, and at times with a remark to show beside the bar.

    The remark is a function, called only where somebody looks: what it reads may have to stop a device.
    """

    def __call__(self, finished: int, remark: Callable[[], str] | None = None, /) -> None: ...


class Progress(Protocol):
    """Anything that can show how far a stage has come."""

    def stage(self, description: str, total: int) -> AbstractContextManager[Advance]:
        """Open a stage of ``total`` items; inside the block, call the yielded function as items finish.

        A stage of no items is its words alone: nothing is waited for.
        """
        ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        yield lambda finished, remark=None: None


SILENT: Progress = Silent()


@dataclass(frozen=True)
class Prefixed:
    """Hands every stage on to another sink, with words before its description."""

    progress: Progress
    words: str

    def stage(self, description: str, total: int) -> AbstractContextManager[Advance]:
        return self.progress.stage(f"{self.words}: {description}", total)


def announce(progress: Progress, expected: object) -> None:
    """Say how long work will take, before it starts: one line, the same for every command."""
    with progress.stage(f"estimate: {expected}", 0):
        pass
