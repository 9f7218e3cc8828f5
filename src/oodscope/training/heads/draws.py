"""Random numbers of many tasks at once, each task's a function of its own seed."""

import math

import torch
from torch import Tensor

from oodscope.data.addressed import Draws

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
