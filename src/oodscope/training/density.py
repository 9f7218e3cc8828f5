"""DensityRecipe: trainings that bring a network of their own and need no labels."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.models.density.base import LEVELS, DensityModel, DensityShape
from oodscope.models.density.saved import build_density
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.recipe import Batch, ImageRecipe, TrainingFacts


class DensityRecipe(ImageRecipe):
    """A training of a density model: it takes the place of whatever network it is given.

    Images are mirrored and not moved: black borders would be learnt as if they were part of the images. Other
    parameters are those of ``Recipe``.

    Parameters
    ----------
    mutation : share of pixel values that are replaced by uniform ones. With some of them replaced, the model learns the
        background of images only: the second network of ``likelihood_ratio``.
    """

    own_network: ClassVar[bool] = True
    cost: ClassVar[float | None] = None

    algorithm: Literal["sgd", "adam"] = "adam"
    learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    augment: AnyAugment = Augment(pad=0)
    mutation: float = Field(default=0.0, ge=0, le=1)

    @abstractmethod
    def shape(self, facts: TrainingFacts) -> DensityShape:
        """What decides the layers, for these images."""

    def check(self, facts: TrainingFacts) -> None:
        # first weights are drawn and dropped; nobody else's random numbers should notice
        with torch.random.fork_rng(devices=[]):
            build_density(self.shape(facts))

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> DensityModel:
        return build_density(self.shape(facts))

    def pixels(self, batch: Batch) -> Tensor:
        """The images of a batch as stored levels in [0, 1], some of them replaced if the recipe says so."""
        assert batch.scale is not None, "every stream gives the scale of its images"
        levels = (batch.scale.to_pixels(batch.images) * (LEVELS - 1)).round().clamp(0, LEVELS - 1)
        if self.mutation:
            chance, other = uniform(levels, batch), uniform(levels, batch)
            levels = torch.where(chance < self.mutation, (other * LEVELS).floor(), levels)
        return levels / (LEVELS - 1)


def uniform(like: Tensor, batch: Batch) -> Tensor:
    """Random numbers in [0, 1) of the shape of ``like``, from those of the step."""
    draws = batch.draws
    assert draws is not None, "every step has random numbers"
    return torch.rand(like.shape, generator=draws, device=draws.device).to(like)
