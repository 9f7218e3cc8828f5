"""The training loop of a generator: steps, losses, checkpoints, and the way back to where it was killed."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import backward
from torch.optim import Adam

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.execution import Advance
from oodscope.generation.gan.average import Average
from oodscope.generation.gan.losses import discriminator_loss, generator_loss, gradient_penalty
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.views import view
from oodscope.models.generators import Discriminator, GeneratorShape, StyleGenerator
from oodscope.training.checkpoint import Checkpoints
from oodscope.training.loop import CHECKPOINT_SECONDS, SAVING_SHARE
from oodscope.training.randomness import generator as random_numbers

REPORT_STEPS = 100
"""Losses are looked at every so many steps, because each look makes a GPU wait."""


class Losses(StrictModel):
    """Mean losses of the steps up to ``step``; at 1.39 and 0.69 the discriminator only guesses."""

    step: int
    discriminator: float
    generator: float


class GanLoop:
    """One training on one device: its state is exactly what a checkpoint holds.

    Parameters
    ----------
    pixels : all training images, uint8 ``[N, C, H, W]``; they move to the device.
    shape : of the generator.
    checkpoints : where to go on from, and where to save.
    look : called with the averaged generator whenever a checkpoint is due.
    """

    def __init__(
        self,
        recipe: GanRecipe,
        pixels: Tensor,
        shape: GeneratorShape,
        checkpoints: Checkpoints | None,
        device: torch.device,
        look: Callable[[StyleGenerator], None],
    ) -> None:
        self.recipe, self.checkpoints, self.device, self.look = recipe, checkpoints, device, look
        self.pixels = pixels.to(device)
        self.generator = StyleGenerator(shape).to(device).to(memory_format=torch.channels_last)
        discriminator = Discriminator(shape.size, shape.channels, recipe.discriminator_width)
        self.discriminator = discriminator.to(device).to(memory_format=torch.channels_last)
        self.average = Average(self.generator, recipe.average_images)
        # a penalty taken in every k-th step is one more update in k: rate and memory shrink to match
        lazy = recipe.r1_every / (recipe.r1_every + 1) if recipe.r1 else 1.0
        self.generator_adam = self._adam(self.generator, 1.0)
        self.discriminator_adam = self._adam(self.discriminator, lazy)
        self.step, self.seconds = 0, 0.0
        self.history: list[Losses] = []
        self.pending: list[Tensor] = []

    def run(self, advance: Advance, stop_after: float | None) -> None:
        """Train from the last checkpoint, or from the start, to the last step or until the time is up."""
        if self.checkpoints and (state := self.checkpoints.load()):
            self._restore(state)
        advance(min(self.step, self.recipe.steps))
        begun = self.clock = time.perf_counter()
        next_save = begun + CHECKPOINT_SECONDS
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=True):
            while self.step < self.recipe.steps:
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

    def _descend(self) -> None:
        """One step of the discriminator, one of the generator, one of the average."""
        recipe, draws = self.recipe, random_numbers("gan", self.recipe.seed, self.step, device=self.device)
        real = self._shown(self._real(draws), draws)
        self.discriminator.requires_grad_(True)
        with self._precision():
            with torch.no_grad():
                fake = self._shown(self._fake(draws), draws)
            lost = discriminator_loss(self.discriminator(real), self.discriminator(fake))
        self.discriminator_adam.zero_grad()
        backward(lost)
        if recipe.r1 and self.step % recipe.r1_every == 0:
            backward(recipe.r1 * recipe.r1_every * gradient_penalty(self.discriminator, real))
        self.discriminator_adam.step()

        self.discriminator.requires_grad_(False)
        with self._precision():
            won = generator_loss(self.discriminator(self._shown(self._fake(draws), draws)))
        self.generator_adam.zero_grad()
        backward(won)
        self.generator_adam.step()
        self.step += 1
        self.average.follow(self.generator, recipe.batch_size, self.step * recipe.batch_size)
        self.pending.append(torch.stack([lost.detach(), won.detach()]))
        if len(self.pending) >= REPORT_STEPS:
            self.history.append(self._losses())
            self.pending = []

    def _real(self, draws: torch.Generator) -> Tensor:
        size = (self.recipe.batch_size,)
        rows = torch.randint(len(self.pixels), size, generator=draws, device=self.device)
        real = self.pixels[rows].to(torch.float32, memory_format=torch.channels_last) / 127.5 - 1
        if self.recipe.flip:
            mirrored = torch.rand(size, generator=draws, device=self.device) < 0.5
            real = torch.where(mirrored.view(-1, 1, 1, 1), real.flip(3), real)
        return real

    def _fake(self, draws: torch.Generator) -> Tensor:
        size = (self.recipe.batch_size, self.recipe.latent)
        drawn: Tensor = self.generator(torch.randn(size, generator=draws, device=self.device))
        return drawn

    def _shown(self, images: Tensor, draws: torch.Generator) -> Tensor:
        return view(images, draws, self.recipe.augment) if self.recipe.augment else images

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16-mixed")

    def _adam(self, model: nn.Module, lazy: float) -> Adam:
        rate, memory = self.recipe.learning_rate * lazy, 0.99**lazy
        return Adam(model.parameters(), lr=rate, betas=(0.0, memory), fused=self.device.type == "cuda")

    def _losses(self) -> Losses:
        """The mean of the pending losses; a training that diverged is noticed here, before it reaches a checkpoint."""
        lost, won = torch.stack(self.pending).mean(0).tolist()
        if not (math.isfinite(lost) and math.isfinite(won)):
            raise OodscopeError(
                f"training the generator diverged before step {self.step}: the losses are {lost} and {won}. Lower "
                "learning_rate, or raise r1 tenfold"
            )
        return Losses(step=self.step, discriminator=lost, generator=won)

    def _save(self) -> None:
        if self.pending:
            self._losses()
        now = time.perf_counter()
        self.seconds, self.clock = self.seconds + now - self.clock, now
        if self.checkpoints is not None:
            self.checkpoints.save(self._state())
        self.look(self.average.model)

    def _parts(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "average": self.average.model,
            "generator_adam": self.generator_adam,
            "discriminator_adam": self.discriminator_adam,
        }

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
