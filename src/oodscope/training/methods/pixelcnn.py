"""PixelCNN++: maximum likelihood of pixels, one after the other."""

from typing import ClassVar, cast

from pydantic import Field
from torch import nn

from oodscope.base.paper import Paper
from oodscope.models.density.pixelcnn import PixelCNN, PixelCNNShape
from oodscope.training.density import DensityRecipe
from oodscope.training.recipe import Batch, Step, TrainingFacts


class PixelCNNRecipe(DensityRecipe):
    r"""Bits per dimension of a PixelCNN++: :math:`-\tfrac1D \sum_i \log_2 P(x_i \mid x_{<i})`, of stored levels.

    Parameters
    ----------
    filters : channels of every layer; the paper has 160.
    blocks : gated residual blocks at each resolution; the paper has 5.
    resolutions : the side is halved between them.
    mixtures : logistics in the mixture of each pixel; the paper has 10.
    dropout : in every block.
    """

    name: ClassVar[str] = "pixelcnn"
    paper: ClassVar[Paper | None] = Paper(
        "PixelCNN++: Improving the PixelCNN with Discretized Logistic Mixture Likelihood and Other Modifications",
        "Salimans et al.",
        "ICLR 2017",
    )
    detectors: ClassVar[tuple[str, ...]] = ("pixelcnn", "input_complexity", "likelihood_ratio")
    recordable: ClassVar[bool] = True

    epochs: int = Field(default=20, gt=0)
    clip_norm: float = Field(default=1.0, ge=0)
    filters: int = Field(default=48, ge=1)
    blocks: int = Field(default=2, ge=1)
    resolutions: int = Field(default=3, ge=1)
    mixtures: int = Field(default=5, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)

    def shape(self, facts: TrainingFacts) -> PixelCNNShape:
        names = ("filters", "blocks", "resolutions", "mixtures", "dropout")
        own = {name: getattr(self, name) for name in names}
        return PixelCNNShape(channels=facts.channels, size=facts.size, **own)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        return Step(cast(PixelCNN, model).score(self.pixels(batch)).mean())
