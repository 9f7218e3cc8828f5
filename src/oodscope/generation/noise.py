"""Noise: the random numbers of one block of chains."""

import torch
from torch import Tensor

from oodscope.base.hashing import fingerprint

AHEAD = 64
"""Steps that are drawn at once, if they are small: one launch instead of many."""
NUMBERS = 2**22
"""Numbers that are drawn at once at most."""


class Noise:
    """A stream of random numbers that depends on the seed and the number of the block, and on nothing else.

    Draws of one shape are made several at a time and handed out one by one. What the n-th call returns depends on the
    calls before it only, so a longer search begins like a shorter one.
    """

    def __init__(self, seed: int, block: int, device: torch.device) -> None:
        number = int(fingerprint(["search", seed, block])[:15], 16)
        self.generator = torch.Generator(device).manual_seed(number)
        self._waiting: dict[tuple[str, tuple[int, ...]], list[Tensor]] = {}

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return self._next("normal", shape)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers from [0, 1)."""
        return self._next("uniform", shape)

    def _next(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        waiting = self._waiting.setdefault((kind, shape), [])
        if not waiting:
            numbers = torch.Size(shape).numel()
            draw = torch.randn if kind == "normal" else torch.rand
            many = (max(1, min(AHEAD, NUMBERS // numbers)), *shape)
            waiting.extend(reversed(draw(many, generator=self.generator, device=self.generator.device).unbind()))
        return waiting.pop()
