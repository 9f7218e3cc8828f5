"""The training loop of near-OOD generators, plain and fine-tuned."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import backward

from oodscope.generation.gan.average import Average, settle
from oodscope.generation.gan.losses import hinge_discriminator_loss, hinge_generator_loss
from oodscope.generation.gan.real import RealImages, unit_range
from oodscope.generation.gan.resumable import ResumableLoop, mixed, short_memory_adam
from oodscope.generation.gan.views import view
from oodscope.generation.near.objective import NearObjective
from oodscope.generation.near.recipe import NearRecipe
from oodscope.models.generators.saved import LatentGenerator
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.randomness import generator as random_numbers
from oodscope.training.loop.randomness import seed_of
from oodscope.training.loop.replay import Replay


class NearLoop(ResumableLoop):
    """Some steps of the discriminator, one of the generator, again and again.

    Parameters
    ----------
    generator, discriminator : with their first weights; they move to the device.
    real : the training images.
    objective : the terms beside the game; ``None`` for a plain generator.
    steps : of the generator.
    look : called with the averaged generator whenever a checkpoint is due.
    """

    repeatable = True

    def __init__(
        self,
        recipe: NearRecipe,
        generator: LatentGenerator,
        discriminator: nn.Module,
        real: RealImages,
        objective: NearObjective | None,
        steps: int,
        checkpoints: Checkpoints | None,
        look: Callable[[LatentGenerator], None],
    ) -> None:
        super().__init__(steps, checkpoints, real.device)
        self.recipe, self.real, self.objective, self.look = recipe, real, objective, look
        if objective is not None:
            self.terms = ("discriminator", "generator", "perceptual", "semantic")
        self.generator = generator.to(self.device).to(memory_format=torch.channels_last).train().requires_grad_(True)
        self.discriminator = discriminator.to(self.device).to(memory_format=torch.channels_last).train()
        self.average = Average(self.generator, recipe.average_images)
        self.generator_adam = short_memory_adam(self.generator, recipe.learning_rate, self.device)
        self.discriminator_adam = short_memory_adam(self.discriminator, recipe.learning_rate, self.device)
        self.replay = Replay(self._learn, self.device)

    def settled(self) -> LatentGenerator:
        """The averaged generator, with statistics of its own and ready to draw."""

        def draw(model: LatentGenerator, number: int) -> None:
            self._drawn(model, random_numbers("near statistics", self.recipe.seed, number, device=self.device))

        settle(self.average.model, self.generator, draw)
        return self.average.model

    def _descend(self) -> None:
        place = "base" if self.objective is None else "fine"
        losses = self.replay(seed_of("near", place, self.recipe.seed, self.step))
        self.step += 1
        size = self.recipe.batch_size
        self.average.follow(self.generator, size, self.step * size)
        self._note(losses)

    def _learn(self, draws: torch.Generator) -> list[Tensor]:
        for _ in range(self.recipe.discriminator_steps):
            lost = self._discriminate(draws)
        with mixed(self.device, self.recipe.precision):
            drawn, classes = self._drawn(self.generator, draws)
            won = hinge_generator_loss(self.discriminator(self._shown(drawn, draws), classes))
            noted = [lost, won]
            if self.objective is not None:
                cost, distance, information = self.objective(unit_range(drawn), self._partners(classes, draws))
                won, noted = won + cost, [*noted, distance, information]
        self.generator_adam.zero_grad()
        backward(won, inputs=list(self.generator.parameters()))
        self.generator_adam.step()
        return noted

    def _discriminate(self, draws: torch.Generator) -> Tensor:
        real, labels = self.real.draw(self.recipe.batch_size, draws)
        with mixed(self.device, self.recipe.precision):
            with torch.no_grad():
                drawn, classes = self._drawn(self.generator, draws)
            # one pass over both kinds: the discriminator has no statistics over its batch that could mix them
            shown = self._shown(torch.cat([real, drawn]), draws)
            logits = self.discriminator(shown, torch.cat([labels, classes]))
            lost = hinge_discriminator_loss(*logits.chunk(2))
        self.discriminator_adam.zero_grad()
        backward(lost, inputs=list(self.discriminator.parameters()))
        self.discriminator_adam.step()
        return lost

    def _drawn(self, generator: LatentGenerator, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        size = self.recipe.batch_size
        latents = torch.randn(size, generator.latent_dimension, generator=draws, device=self.device)
        classes = torch.randint(max(1, generator.classes), (size,), generator=draws, device=self.device)
        return generator(latents, classes), classes

    def _partners(self, classes: Tensor, draws: torch.Generator) -> list[Tensor]:
        if self.recipe.paired_by_class:
            return [unit_range(self.real.of_classes(classes, draws))]
        return [unit_range(self.real.draw(len(classes), draws)[0]) for _ in range(self.recipe.nearest_of)]

    def _shown(self, images: Tensor, draws: torch.Generator) -> Tensor:
        return view(images, draws, self.recipe.augment) if self.recipe.augment else images

    def _show(self) -> None:
        self.look(self.settled())

    def _parts(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "average": self.average.model,
            "generator_adam": self.generator_adam,
            "discriminator_adam": self.discriminator_adam,
        }
