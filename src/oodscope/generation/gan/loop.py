"""The training loop of an unconditional generator."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import backward
from torch.optim import Adam

from oodscope.generation.gan.average import Average
from oodscope.generation.gan.losses import discriminator_loss, generator_loss, gradient_penalty
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.resumable import ResumableLoop, mixed, on_device
from oodscope.generation.gan.views import view
from oodscope.models.generators.stylegan import Discriminator, GeneratorShape, StyleGenerator
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.randomness import seed_of
from oodscope.training.loop.replay import Replay


class GanLoop(ResumableLoop):
    """Alternating steps of discriminator and generator.

    Parameters
    ----------
    pixels : all training images, uint8 ``[N, C, H, W]``; they move to the device.
    shape : of the generator.
    checkpoints : where to go on from, and where to save.
    look : called with the averaged generator whenever a checkpoint is due.
    """

    advice = "Lower learning_rate, or raise r1 tenfold"

    def __init__(
        self,
        recipe: GanRecipe,
        pixels: Tensor,
        shape: GeneratorShape,
        checkpoints: Checkpoints | None,
        device: torch.device,
        look: Callable[[StyleGenerator], None],
    ) -> None:
        super().__init__(recipe.steps, checkpoints, device)
        self.recipe, self.look = recipe, look
        self.pixels = pixels.to(device)
        self.generator = StyleGenerator(shape).to(device).to(memory_format=torch.channels_last)
        discriminator = Discriminator(shape.size, shape.channels, recipe.discriminator_width)
        self.discriminator = discriminator.to(device).to(memory_format=torch.channels_last)
        self.average = Average(self.generator, recipe.average_images)
        # a penalty taken in every k-th step is one more update in k: rate and memory shrink to match
        lazy = recipe.r1_every / (recipe.r1_every + 1) if recipe.r1 else 1.0
        self.generator_adam = self._adam(self.generator, 1.0)
        self.discriminator_adam = self._adam(self.discriminator, lazy)
        self.replays = {
            penalised: Replay(partial(self._learn, penalised=penalised), device) for penalised in (False, True)
        }

    def _descend(self) -> None:
        recipe = self.recipe
        penalised = bool(recipe.r1) and self.step % recipe.r1_every == 0
        losses = self.replays[penalised](seed_of("gan", recipe.seed, self.step))
        self.step += 1
        self.average.follow(self.generator, recipe.batch_size, self.step * recipe.batch_size)
        self._note(losses)

    def _learn(self, draws: torch.Generator, penalised: bool) -> list[Tensor]:
        """One step of the discriminator, one of the generator."""
        recipe = self.recipe
        real = self._shown(self._real(draws), draws)
        self.discriminator.requires_grad_(True)
        with mixed(self.device, self.recipe.precision):
            with torch.no_grad():
                fake = self._shown(self._fake(draws), draws)
            lost = discriminator_loss(self.discriminator(real), self.discriminator(fake))
        self.discriminator_adam.zero_grad()
        backward(lost)
        if penalised:
            backward(recipe.r1 * recipe.r1_every * gradient_penalty(self.discriminator, real))
        self.discriminator_adam.step()

        self.discriminator.requires_grad_(False)
        with mixed(self.device, self.recipe.precision):
            won = generator_loss(self.discriminator(self._shown(self._fake(draws), draws)))
        self.generator_adam.zero_grad()
        backward(won)
        self.generator_adam.step()
        return [lost, won]

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

    def _adam(self, model: nn.Module, lazy: float) -> Adam:
        rate, memory = self.recipe.learning_rate * lazy, 0.99**lazy
        return Adam(model.parameters(), lr=rate, betas=(0.0, memory), **on_device(self.device))

    def _show(self) -> None:
        self.look(self.average.model)

    def _parts(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "average": self.average.model,
            "generator_adam": self.generator_adam,
            "discriminator_adam": self.discriminator_adam,
        }
