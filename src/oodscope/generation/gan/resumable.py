"""What every adversarial training shares: steps, losses, checkpoints, and the way back to where it was killed."""

import math
import time
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.execution.progress import Advance
from oodscope.training.loop.checkpoint import CHECKPOINT_SECONDS, SAVING_SHARE, Checkpoints

REPORT_STEPS = 100
"""Losses are looked at every so many steps, because each look makes a GPU wait."""


class Losses(StrictModel):
    """Mean losses of the steps up to ``step``.

    Parameters
    ----------
    discriminator, generator : of the game; logistic ones are at 1.39 and 0.69 where the discriminator only guesses.
    perceptual, semantic, label : the other terms of a generator that has them, before their weights.
    """

    step: int
    discriminator: float
    generator: float
    perceptual: float | None = None
    semantic: float | None = None
    label: float | None = None


def mixed(device: torch.device, precision: str) -> torch.autocast:
    """Products in bfloat16 where the recipe says ``bf16-mixed``; otherwise nothing changes."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16-mixed")


def short_memory_adam(model: nn.Module, rate: float, device: torch.device) -> Adam:
    """Adam as DCGAN has it: the mean of gradients forgets quickly, because the opponent moves."""
    return Adam(model.parameters(), lr=rate, betas=(0.5, 0.999), **on_device(device))


def on_device(device: torch.device) -> dict[str, bool]:
    """How an optimiser is asked to work on a GPU alone, so that its steps can be recorded."""
    return {"fused": True, "capturable": True} if device.type == "cuda" else {}


class ResumableLoop(ABC):
    """One training on one device: its state is exactly what a checkpoint holds.

    Parameters
    ----------
    steps : to take in all.
    checkpoints : where to go on from, and where to save.
    """

    advice = "Lower learning_rate"
    """For the error that a diverged training ends with."""

    terms: tuple[str, ...] = ("discriminator", "generator")
    """What the losses of a step are, in this order."""

    repeatable = False
    """Whether a GPU may only use algorithms that give the same digits each time."""

    def __init__(self, steps: int, checkpoints: Checkpoints | None, device: torch.device) -> None:
        self.steps, self.checkpoints, self.device = steps, checkpoints, device
        self.step, self.seconds = 0, 0.0
        self.history: list[Losses] = []
        self.pending: list[Tensor] = []

    @abstractmethod
    def _descend(self) -> None:
        """One step; it counts ``self.step`` up and hands ``_note`` its losses."""

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Everything with a ``state_dict`` that a training goes on from."""

    @abstractmethod
    def _show(self) -> None:
        """Let somebody look at samples; called whenever a checkpoint was due."""

    def run(self, advance: Advance, stop_after: float | None) -> None:
        """Train from the last checkpoint, or from the start, to the last step or until the time is up."""
        if self.checkpoints and (state := self.checkpoints.load()):
            self._restore(state)
        advance(min(self.step, self.steps))
        begun = self.clock = time.perf_counter()
        next_save = begun + CHECKPOINT_SECONDS
        fixed = self.repeatable
        with torch.backends.cudnn.flags(enabled=True, benchmark=not fixed, deterministic=fixed, allow_tf32=True):
            while self.step < self.steps:
                self._descend()
                advance(1)
                now = time.perf_counter()
                if stop_after is not None and now - begun >= stop_after:
                    break
                if now >= next_save:
                    self._save()
                    saved = time.perf_counter()
                    next_save = saved + max(CHECKPOINT_SECONDS, (saved - now) / SAVING_SHARE)
        self._save()

    def _note(self, losses: Tensor) -> None:
        self.pending.append(losses)
        if len(self.pending) >= REPORT_STEPS:
            self.history.append(self._losses())
            self.pending = []

    def _losses(self) -> Losses:
        """The mean of the pending losses; a training that diverged is noticed here, before it reaches a checkpoint."""
        means = torch.stack(self.pending).mean(0).tolist()
        if not all(math.isfinite(value) for value in means):
            raise OodscopeError(
                f"training the generator diverged before step {self.step}: the losses are "
                f"{' and '.join(str(value) for value in means)}. {self.advice}"
            )
        return Losses(step=self.step, **dict(zip(self.terms, means)))

    def _save(self) -> None:
        if self.pending:
            self._losses()
        now = time.perf_counter()
        self.seconds, self.clock = self.seconds + now - self.clock, now
        if self.checkpoints is not None:
            self.checkpoints.save(self._state())
        self._show()

    def _state(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts().items()} | {
            "step": self.step,
            "seconds": self.seconds,
            "history": [losses.model_dump() for losses in self.history],
            "pending": [losses.cpu() for losses in self.pending],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.step, self.seconds = state["step"], state["seconds"]
        self.history = [Losses.model_validate(losses) for losses in state["history"]]
        self.pending = [losses.to(self.device) for losses in state["pending"]]
