"""Best: for every head, the weights that did best on its validation rows so far."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.training.heads.stack import Stack


@dataclass(frozen=True, eq=False)
class Best:
    """Weights, how many validation rows they got right, and after which epoch (from 1) they were kept; ``[T]`` each.

    All of it stays on the device: which heads improved is a mask there, not a question asked from here.
    """

    stack: Stack
    correct: Tensor
    epoch: Tensor

    @classmethod
    def none(cls, stack: Stack) -> "Best":
        """Before the first epoch."""
        count, device = len(stack.hidden), stack.hidden.device
        return cls(stack, torch.full((count,), -1.0, device=device), torch.zeros(count, device=device))

    def after(self, epoch: int, stack: Stack, correct: Tensor, *, always: bool) -> "Best":
        """The better of the two for every head; the newer for all if ``always``."""
        better = correct >= 0 if always else correct > self.correct
        return Best(
            stack.where(better, self.stack),
            torch.where(better, correct, self.correct),
            torch.where(better, float(epoch), self.epoch),
        )

    def take(self, tasks: Tensor) -> "Best":
        """Of these heads."""
        return Best(self.stack.take(tasks), self.correct[tasks], self.epoch[tasks])
