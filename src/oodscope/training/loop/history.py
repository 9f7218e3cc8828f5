"""What is remembered of every epoch, and the running sums it comes from."""

import math
from typing import Any

import torch
from torch import Tensor

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError

FLUSH_STEPS = 100
"""Losses are looked at every so many steps, because each look makes a GPU wait."""


class Epoch(StrictModel):
    """One line of the history. Accuracies are in [0, 1], ``None`` where the method or the caller has none.

    ``val_loss`` is what a training without labels is judged by. ``seconds`` of trainings side by side are shared out.
    """

    loss: float
    train_accuracy: float | None
    val_accuracy: float | None
    seconds: float
    val_loss: float | None = None


class Meter:
    """Mean loss and training accuracy of the running epoch.

    Losses stay on the device and are looked at every few steps; a training that diverged is noticed then, before it can
    reach a checkpoint.
    """

    def __init__(self, epoch: int, sums: dict[str, Any] | None = None) -> None:
        self.epoch = epoch
        self.sums = sums or {"loss": 0.0, "images": 0, "correct": 0, "judged": 0, "seconds": 0.0}
        self._pending: list[tuple[Tensor, int, int, float]] = []

    def add(self, numbers: Tensor, count: int, step: int, rate: float) -> None:
        """Count one step.

        Parameters
        ----------
        numbers : the loss and, if the method has logits, how many of the ``count`` labels they got right.
        rate : the learning rate that the step was made with.
        """
        self._pending.append((numbers, count, step, rate))
        if len(self._pending) >= FLUSH_STEPS:
            self.flush()

    def flush(self) -> dict[str, Any]:
        """Bring the sums up to date."""
        pending, self._pending = self._pending, []
        table = torch.stack([entry[0] for entry in pending]).tolist() if pending else []
        for (loss, *correct), (_, count, step, rate) in zip(table, pending):
            if not math.isfinite(loss):
                raise OodscopeError(
                    f"training diverged: the loss is {loss} in epoch {self.epoch + 1}, step {step + 1}, "
                    f"at learning rate {rate:.3g}. Lower learning_rate or raise warmup_epochs"
                )
            self.sums["loss"] += loss * count
            self.sums["images"] += count
            if correct:
                self.sums["correct"] += int(correct[0])
                self.sums["judged"] += count
        return self.sums

    def close(self, val_accuracy: float | None, val_loss: float | None = None) -> Epoch:
        """The finished epoch's line of history."""
        sums = self.flush()
        return Epoch(
            loss=sums["loss"] / sums["images"],
            train_accuracy=sums["correct"] / sums["judged"] if sums["judged"] else None,
            val_accuracy=val_accuracy,
            seconds=sums["seconds"],
            val_loss=val_loss,
        )
