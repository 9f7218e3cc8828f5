"""Deck: the rows of many tasks, shuffled anew each epoch and dealt into batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.training.heads.task import Rows

_LAST = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Deck:
    """Row numbers ``[T, n]``, of which the first ``counts[t]`` are task t's; the others only fill up.

    What a task is dealt depends on its own rows and draws alone, never on how long its neighbours are.
    """

    rows: Tensor
    counts: Tensor

    @classmethod
    def of(cls, rows: Sequence[Rows], device: torch.device) -> "Deck":
        counts = [len(each) for each in rows]
        table = np.zeros((len(rows), max(1, *counts)), dtype=np.int64)
        for line, each in zip(table, rows):
            line[: len(each)] = each
        return cls(torch.from_numpy(table).to(device), torch.tensor(counts, device=device))

    def shuffled(self, draws: Draws, purpose: str) -> "Deck":
        """Each task's rows in an order of its own, still before what fills up."""
        keys = draws.bits(purpose, self.longest)
        order = torch.where(self.valid(), keys, _LAST).argsort(dim=1)
        return Deck(self.rows.gather(1, order), self.counts)

    def first(self, counts: list[int]) -> "Deck":
        """The first ``counts[t]`` rows of each task."""
        return Deck(self.rows[:, : max(counts)], torch.tensor(counts, device=self.rows.device))

    @property
    def longest(self) -> int:
        """The most rows of one task."""
        return self.rows.shape[1]

    def dealt(self, step: int, steps: int) -> tuple[Tensor, Tensor]:
        """Rows ``[T, B]`` of one of ``steps`` batches of nearly equal size, and which of them count."""
        begin = step * self.counts // steps
        end = (step + 1) * self.counts // steps
        places = begin[:, None] + torch.arange(math.ceil(self.longest / steps), device=self.rows.device)
        return self.rows.gather(1, places.clamp(max=self.longest - 1)), places < end[:, None]

    def valid(self) -> Tensor:
        """Which entries are rows and not filling, ``[T, n]``."""
        return torch.arange(self.longest, device=self.rows.device) < self.counts[:, None]

    def take(self, tasks: Tensor) -> "Deck":
        """The rows of these tasks."""
        return Deck(self.rows[tasks], self.counts[tasks])
