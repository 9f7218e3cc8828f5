"""ClassVectors: a published class-conditional generator, asked for classes by number."""

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError


class ClassVectors(nn.Module):
    r"""A generator :math:`G(z, e_y, t)` that takes class vectors and a truncation, as BigGAN's published weights do.

    ``pytorch_pretrained_biggan.BigGAN`` (128, 256 and 512 px, 1,000 classes of ImageNet, latents of 128 numbers) has
    this form; a function of three lines makes it a variation of an attack::

        def build():
            return ClassVectors(BigGAN.from_pretrained("biggan-deep-128"), classes=1000, latent=128)

        oodscope attack ... --variations gan=python:mine:build,truncation=0.5

    Parameters
    ----------
    generator : from latents ``[N, D]``, class vectors ``[N, C]`` and a truncation to images in [-1, 1].
    classes, latent : C and D.
    truncation : that the generator itself is told; it shortens nothing here.
    """

    def __init__(self, generator: nn.Module, classes: int, latent: int, truncation: float = 1.0) -> None:
        super().__init__()
        if classes < 2 or latent < 1:
            raise ModelError(
                f"a class-conditional generator needs 2 classes or more and latents, not {classes}, {latent}"
            )
        self.generator, self.classes, self.latent_dimension = generator, classes, latent
        self.truncation = float(truncation)

    def forward(self, latents: Tensor, classes: Tensor) -> Tensor:
        """Images of latents ``[N, D]`` and class numbers ``[N]``."""
        vectors = torch.nn.functional.one_hot(classes, self.classes).to(latents)
        drawn: Tensor = self.generator(latents, vectors, self.truncation)
        return drawn
