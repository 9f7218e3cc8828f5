"""What is remembered of every epoch, and the running sums it comes from."""

import math
from typing import Any

import torch
from torch import Tensor

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.training.recipe import Step

_FLUSH_STEPS = 32


class Epoch(StrictModel):
    """One line of the history. Accuracies are in [0, 1], ``None`` where the method or the caller has none."""

    loss: float
    train_accuracy: float | None
    val_accuracy: float | None
    seconds: float


class Meter:
    """Mean loss and training accuracy of the running epoch.

    Losses stay on the device and are looked at every few steps, because each look makes a GPU wait; a
    training that diverged is noticed then, before it can reach a checkpoint.
    """

    def __init__(self, epoch: int, sums: dict[str, Any] | None = None) -> None:
        self.epoch = epoch
        self.sums = sums or {"loss": 0.0, "images": 0, "correct": 0, "judged": 0, "seconds": 0.0}
        self._pending: list[tuple[Tensor, Tensor | None, int, int, float]] = []

    def add(self, result: Step, labels: Tensor, step: int, rate: float) -> None:
        """Count one step; ``rate`` is the learning rate it was made with."""
        logits = result.logits
        correct = None if logits is None else (logits.detach().argmax(1) == labels).sum()
        self._pending.append((result.loss.detach(), correct, len(labels), step, rate))
        if len(self._pending) >= _FLUSH_STEPS:
            self.flush()

    def flush(self) -> dict[str, Any]:
        """Bring the sums up to date."""
        pending, self._pending = self._pending, []
        losses = torch.stack([entry[0] for entry in pending]).tolist() if pending else []
        for loss, (_, correct, count, step, rate) in zip(losses, pending):
            if not math.isfinite(loss):
                raise OodscopeError(
                    f"training diverged: the loss is {loss} in epoch {self.epoch + 1}, step {step + 1}, "
                    f"at learning rate {rate:.3g}. Lower learning_rate or raise warmup_epochs"
                )
            self.sums["loss"] += loss * count
            self.sums["images"] += count
            if correct is not None:
                self.sums["correct"] += int(correct)
                self.sums["judged"] += count
        return self.sums

    def close(self, val_accuracy: float | None) -> Epoch:
        """The finished epoch's line of history."""
        sums = self.flush()
        return Epoch(
            loss=sums["loss"] / sums["images"],
            train_accuracy=sums["correct"] / sums["judged"] if sums["judged"] else None,
            val_accuracy=val_accuracy,
            seconds=sums["seconds"],
        )
