"""Autoencoder: the reconstruction error of an image as its score."""

from typing import ClassVar, cast

from pydantic import Field
from torch import nn

from oodscope.base.paper import Paper
from oodscope.models.density.autoencoder import Autoencoder, AutoencoderShape, squared_error
from oodscope.models.density.base import LEVELS
from oodscope.training.density import DensityRecipe, uniform
from oodscope.training.recipe import Batch, Step, TrainingFacts


class AutoencoderRecipe(DensityRecipe):
    r"""Squared error of images after the way through a short code.

    .. math:: \tfrac1D \lVert x - g(f(x)) \rVert^2

    Pixels are dequantised, :math:`x \leftarrow (255x + u)/256`.

    Parameters
    ----------
    width : channels of the first convolution.
    code : length of the code.
    """

    name: ClassVar[str] = "autoencoder"
    paper: ClassVar[Paper | None] = Paper(
        "Evaluating Out-of-Distribution Detectors Through Adversarial Generation of Outliers",
        "Yoon et al.",
        "arXiv 2208.10940",
    )
    detectors: ClassVar[tuple[str, ...]] = ("autoencoder",)
    recordable: ClassVar[bool] = True

    epochs: int = Field(default=30, gt=0)
    width: int = Field(default=64, ge=1)
    code: int = Field(default=64, ge=1)

    def shape(self, facts: TrainingFacts) -> AutoencoderShape:
        return AutoencoderShape(channels=facts.channels, size=facts.size, width=self.width, code=self.code)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        pixels = self.pixels(batch)
        spread = (pixels * (LEVELS - 1) + uniform(pixels, batch)) / LEVELS
        return Step(squared_error(cast(Autoencoder, model).reconstruct(spread), spread).mean())
