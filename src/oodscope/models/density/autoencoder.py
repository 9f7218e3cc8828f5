"""Autoencoder: images through a short code and back, scored by what is lost."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.models.density.base import DensityModel, DensityShape

HALVINGS = 3


class AutoencoderShape(DensityShape):
    """What decides the layers of an ``Autoencoder``.

    Parameters
    ----------
    width : channels of the first convolution; they double with every halving of the side.
    code : length of the code. It decides how well everything is reconstructed, outliers included.
    """

    kind: Literal["autoencoder"] = "autoencoder"
    width: int = Field(default=64, ge=1)
    code: int = Field(default=64, ge=1)


class Autoencoder(DensityModel):
    r"""Three strided convolutions to a short code, and back.

    .. math:: s(x) = \tfrac1D \lVert x - g(f(x)) \rVert^2

    What was never seen should be reconstructed badly; it is not where it is smoother than the training images.
    """

    shape: AutoencoderShape

    def __init__(self, shape: AutoencoderShape) -> None:
        super().__init__(shape)
        small = shape.halved(HALVINGS, "the autoencoder")
        first, second, third = shape.width, 2 * shape.width, 4 * shape.width
        self.encoder = nn.Sequential(
            _down(shape.channels, first),
            _down(first, second),
            _down(second, third),
            nn.Flatten(),
            nn.Linear(third * small**2, shape.code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(shape.code, third * small**2),
            nn.Unflatten(1, (third, small, small)),
            _up(third, second),
            _up(second, first),
            nn.ConvTranspose2d(first, shape.channels, 4, 2, 1),
        )

    def reconstruct(self, pixels: Tensor) -> Tensor:
        """The images after the way through the code."""
        drawn: Tensor = self.decoder(self.encoder(pixels.contiguous(memory_format=torch.channels_last)))
        return drawn.to(pixels.dtype)

    def score(self, pixels: Tensor) -> Tensor:
        """Squared error per image, averaged over pixels and channels."""
        return squared_error(self.reconstruct(pixels), pixels)


def squared_error(made: Tensor, pixels: Tensor) -> Tensor:
    """Mean over the numbers of each image."""
    return (made - pixels).square().mean(dim=(1, 2, 3))


def _down(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU())


def _up(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU())
