"""Deck: the rows of many tasks, shuffled anew each epoch and dealt into batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.training.heads.task import Rows

_LANES = 4
"""Numbers of 16 bits in a word of 64: a quarter of the hashing, and probabilities to 1 in 65,536."""


def seeded(seeds: list[int], stage: str, device: torch.device) -> Draws:
    """The streams of some tasks; two stages of one task draw independent numbers."""
    wrapped = [(seed + 2**63) % 2**64 - 2**63 for seed in seeds]
    return Draws(0, f"heads {stage}", torch.tensor(wrapped, dtype=torch.int64, device=device))


def uniform(draws: Draws, purpose: str, bound: float, *shape: int) -> Tensor:
    """float32 ``[T, *shape]`` between ``-bound`` and ``bound``; the same on every device."""
    high = draws.bits(purpose, *shape) >> 40  # 24 bits with their sign: a float32 holds them exactly
    return (high.to(torch.float32) + 0.5) * (bound * 2.0**-23)


def kept(draws: Draws, purpose: str, shape: torch.Size, dropout: float) -> Tensor:
    """Which entries of ``[T, B, D]`` dropout leaves; a row's draws do not depend on how many rows follow."""
    _, rows, width = shape
    words = draws.bits(purpose, rows, math.ceil(width / _LANES))
    return words.view(torch.int16)[..., :width] >= round(dropout * 2**16) - 2**15


def keep_share(dropout: float) -> float:
    """The exact probability with which ``kept`` keeps an entry."""
    return 1.0 - round(dropout * 2**16) / 2**16


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
