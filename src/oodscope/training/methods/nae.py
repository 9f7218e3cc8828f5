"""NAE: an autoencoder that reconstructs its own samples badly, on purpose."""

import math
from typing import ClassVar, cast

import torch
from pydantic import Field, ValidationInfo, field_validator
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.models.density.base import LEVELS
from oodscope.models.density.langevin import langevin, unit_box, unit_sphere
from oodscope.models.density.nae import NAE, NAEShape
from oodscope.training.density import DensityRecipe, uniform
from oodscope.training.recipe import Batch, Step, TrainingFacts

LAST_RATE = 0.1
"""Share of the first learning rate that the epochs as a plain autoencoder end with."""


class NAERecipe(DensityRecipe):
    r"""Likelihood of an autoencoder as a density, after epochs as a plain one.

    .. math:: E(x^+) - E(x^-) + \gamma E(x^-)^2

    :math:`E` is the mean squared error. Samples :math:`x^-` begin on the decoder's manifold: a chain of latents on the
    unit sphere descends :math:`E(g(z))` from where earlier chains ended, its images are the start of a chain of pixels.
    Validation images are judged by their error alone.

    Parameters
    ----------
    plain_epochs : of the ``epochs``, how many train a plain autoencoder first.
    sampling_rate : the learning rate from then on; larger ones let the energy of samples explode.
    gamma : weight of the guard against that.
    width, code, memory : see ``NAEShape``.
    latent_steps, latent_step, latent_noise : of the chain of latents.
    pixel_steps, pixel_step, pixel_noise : of the chain of pixels; its noise falls as 1/t, as published.
    longest : gradients of the chain of pixels are cut to this length, each row of each channel by itself, as the
        authors' code does.
    fresh : share of chains that begin anew.
    """

    name: ClassVar[str] = "nae"
    paper: ClassVar[Paper | None] = Paper("Autoencoding Under Normalization Constraints", "Yoon et al.", "ICML 2021")
    detectors: ClassVar[tuple[str, ...]] = ("nae",)

    epochs: int = Field(default=43, gt=0)
    learning_rate: float = Field(default=1e-3, gt=0)
    clip_norm: float = Field(default=0.1, ge=0)
    plain_epochs: int = Field(default=40, ge=0)
    sampling_rate: float = Field(default=1e-5, gt=0)
    gamma: float = Field(default=1.0, ge=0)
    width: int = Field(default=64, ge=2, multiple_of=2)
    code: int = Field(default=32, ge=2)
    memory: int = Field(default=10_000, ge=1)
    latent_steps: int = Field(default=10, ge=0)
    latent_step: float = Field(default=1.0, gt=0)
    latent_noise: float = Field(default=0.02, ge=0)
    pixel_steps: int = Field(default=20, ge=0)
    pixel_step: float = Field(default=10.0, gt=0)
    pixel_noise: float = Field(default=0.02, ge=0, le=1)
    longest: float = Field(default=0.01, ge=0, validate_default=True)
    fresh: float = Field(default=0.05, ge=0, le=1)

    @field_validator("longest")
    @classmethod
    def _check_steps(cls, longest: float, known: ValidationInfo) -> float:
        step = known.data.get("pixel_step", 0.0)
        if step * longest > 1:
            raise ValueError(
                f"a chain of pixels leaves its box: a step of {step:g} times gradients of up to {longest:g} crosses "
                f"all of [0, 1]; make pixel_step at most {1 / longest:g}"
            )
        return longest

    def shape(self, facts: TrainingFacts) -> NAEShape:
        return NAEShape(channels=facts.channels, size=facts.size, width=self.width, code=self.code, memory=self.memory)

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """A cosine that ends at a tenth, then the rate of the sampling epochs."""
        plain = self.plain_epochs * steps_per_epoch
        if step >= plain:
            return self.sampling_rate / self.learning_rate
        return LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * step / plain))

    def phase(self, epoch: int) -> int:
        """Whether the model is sampled."""
        return int(epoch >= self.plain_epochs)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        network, pixels = cast(NAE, model), self.pixels(batch)
        spread = (pixels * (LEVELS - 1) + uniform(pixels, batch)) / LEVELS
        error = network.score(spread).mean()
        if not model.training or not self.phase(batch.epoch):
            return Step(error)
        samples = self.samples(network, len(pixels), batch)
        return Step(error + contrast(network.score(samples), self.gamma))

    def samples(self, network: NAE, count: int, batch: Batch) -> Tensor:
        """Images that the model takes for likely, as constants."""
        draws = batch.draws
        assert draws is not None, "every step has random numbers"
        latents = langevin(
            lambda points: network.score(network.decode(points)),
            network.recalled(count, self.fresh, draws),
            steps=self.latent_steps,
            step=self.latent_step,
            noise=lambda _: self.latent_noise,
            draws=draws,
            project=unit_sphere,
        )
        network.remember(latents, draws)
        with torch.no_grad():
            start = unit_box(network.decode(latents))
        return langevin(
            network.score,
            start,
            steps=self.pixel_steps,
            step=self.pixel_step,
            noise=lambda number: self.pixel_noise / max(1, number),
            draws=draws,
            project=unit_box,
            longest=self.longest,
        )


def contrast(samples: Tensor, gamma: float) -> Tensor:
    r"""What the energies of a model's samples add to the loss: :math:`-\overline{E} + \gamma \overline{E^2}`.

    With the mean energy of data, its gradient without the guard is that of the negative log-likelihood.
    """
    return gamma * samples.square().mean() - samples.mean()
