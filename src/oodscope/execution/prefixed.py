"""Prefixed: a progress sink that says whose stages these are."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from oodscope.execution.progress import Advance, Progress


@dataclass(frozen=True)
class Prefixed:
    """Hands every stage on to another sink, with words before its description."""

    progress: Progress
    words: str

    def stage(self, description: str, total: int) -> AbstractContextManager[Advance]:
        return self.progress.stage(f"{self.words}: {description}", total)
