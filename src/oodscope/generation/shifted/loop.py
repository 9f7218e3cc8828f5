"""The training loop of a generator of shifted images."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import backward

from oodscope.generation.distances.semantic import information
from oodscope.generation.gan.losses import discriminator_loss, generator_loss
from oodscope.generation.gan.real import RealImages, unit_range
from oodscope.generation.gan.resumable import ResumableLoop, mixed, short_memory_adam
from oodscope.generation.near.objective import Perceptual
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.models.generators.pix2pix import PatchDiscriminator, UnetGenerator, UnetShape
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.randomness import seed_of
from oodscope.training.loop.replay import Replay


class Members(Protocol):
    """Networks that are asked together, such as ``EnsembleInformation``."""

    def logits(self, images: Tensor) -> Tensor:
        """``[T, N, C]`` logits of images in [0, 1], differentiable."""
        ...


@dataclass(frozen=True)
class ShiftedObjective:
    r""":math:`-λ_p\, d(x, G(x)) + λ_s\, I(G(x)) + λ_y\, \mathrm{CE}`, from one pass of the members."""

    perceptual: Perceptual
    members: Members
    lambda_perceptual: float
    lambda_semantic: float
    lambda_label: float

    def __call__(self, given: Tensor, drawn: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The cost, then the mean of each term: distance, information and cross-entropy.

        Parameters
        ----------
        given, drawn : images in [0, 1].
        labels : of the given images.
        """
        logits = self.members.logits(drawn)
        distance, doubt = self.perceptual(given, drawn).mean(), information(logits).mean()
        entropy = mean_cross_entropy(logits, labels)
        cost = self.lambda_semantic * doubt - self.lambda_perceptual * distance + self.lambda_label * entropy
        return cost, distance, doubt, entropy


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of all members ``[T, N, C]`` and images."""
    right = logits.float().log_softmax(2).gather(2, labels.view(1, -1, 1).expand(len(logits), -1, 1))
    return -right.mean()


class ShiftedLoop(ResumableLoop):
    """One step of the discriminator, one of the generator, on the same images.

    Parameters
    ----------
    real : the images to redraw.
    look : called with the generator, ready to draw, whenever a checkpoint is due.
    """

    terms = ("discriminator", "generator", "perceptual", "semantic", "label")
    repeatable = True

    def __init__(
        self,
        recipe: ShiftedRecipe,
        shape: UnetShape,
        real: RealImages,
        objective: ShiftedObjective,
        checkpoints: Checkpoints | None,
        look: Callable[[UnetGenerator], None],
    ) -> None:
        super().__init__(recipe.steps, checkpoints, real.device)
        self.recipe, self.real, self.objective, self.look = recipe, real, objective, look
        self.generator = UnetGenerator(shape).to(self.device).to(memory_format=torch.channels_last)
        discriminator = PatchDiscriminator(shape.channels, recipe.discriminator_width)
        self.discriminator = discriminator.to(self.device).to(memory_format=torch.channels_last)
        self.generator_adam = short_memory_adam(self.generator, recipe.learning_rate, self.device)
        self.discriminator_adam = short_memory_adam(self.discriminator, recipe.learning_rate, self.device)
        self.replay = Replay(self._learn, self.device)

    def _descend(self) -> None:
        losses = self.replay(seed_of("shifted", self.recipe.seed, self.step))
        self.step += 1
        self._note(losses)

    def _learn(self, draws: torch.Generator) -> list[Tensor]:
        given, labels = self.real.draw(self.recipe.batch_size, draws)
        partners = given if self.recipe.partner == "itself" else self.real.of_classes(labels, draws)
        with mixed(self.device, self.recipe.precision):
            drawn = self.generator(given, draws)
            pairs = torch.cat([given, given]), torch.cat([partners, drawn.detach()])
            lost = discriminator_loss(*self.discriminator(*pairs).chunk(2))
        self.discriminator_adam.zero_grad()
        backward(lost, inputs=list(self.discriminator.parameters()))
        self.discriminator_adam.step()
        with mixed(self.device, self.recipe.precision):
            won = generator_loss(self.discriminator(given, drawn))
            cost, *terms = self.objective(unit_range(given), unit_range(drawn), labels)
        self.generator_adam.zero_grad()
        backward(won + cost, inputs=list(self.generator.parameters()))
        self.generator_adam.step()
        return [lost, won, *terms]

    def _show(self) -> None:
        self.look(self.generator.eval())
        self.generator.train()

    def _parts(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "generator_adam": self.generator_adam,
            "discriminator_adam": self.discriminator_adam,
        }
