"""ARPL: images are pushed away from the reciprocal point of their class, but not beyond a learnt radius."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Batch, Step, TrainingFacts

MARGIN = 1.0
"""Of the ranking loss between distance and radius, as in the authors' code; the paper's text has none."""


class ReciprocalPoints(nn.Module):
    r"""Logits that grow with the distance from a class's reciprocal point.

    .. math:: d_c = \frac1D \lVert h - P_c\rVert^2, \qquad z_c = d_c - \langle h, P_c\rangle

    They are not an affine function of the features, so post-hoc detectors find no linear head.
    """

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.points = nn.Parameter(0.1 * torch.randn(num_classes, width))
        self.radius = nn.Parameter(torch.zeros(()))

    def facts(self) -> dict[str, Any]:
        """The arguments that make the same."""
        return {"width": self.points.shape[1], "num_classes": self.points.shape[0]}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        with torch.autocast(features.device.type, enabled=False):
            h, points = features.float(), self.points.float()
            products = h @ points.T
            lengths = h.square().mean(dim=1, keepdim=True) + points.square().mean(dim=1)
            distances = lengths - 2 / h.shape[1] * products
            return {"logits": distances - products, "distances": distances, "radius": self.radius}


class ARPL(CrossEntropy):
    r"""Cross-entropy over reciprocal points, with a bound on the distance from one's own.

    .. math:: L = \mathrm{CE}(z/\tau, y) + \lambda \max(0,\; d_y - R + 1)

    The score is the largest logit (``mls``); the published rows of OpenOOD take its softmax (``msp``).

    Parameters
    ----------
    weight : :math:`\lambda`.
    temperature : :math:`\tau`.
    """

    name: ClassVar[str] = "arpl"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Adversarial Reciprocal Points Learning for Open Set Recognition", "Chen et al.", "TPAMI 2021"
    )
    detectors: ClassVar[tuple[str, ...]] = ("mls", "msp")

    weight_decay: float = Field(default=1e-4, ge=0)
    weight: float = Field(default=0.1, ge=0)
    temperature: float = Field(default=1.0, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_layer(model, lambda last: ReciprocalPoints(last.in_features, facts.num_classes))

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output = model(batch.images)
        own = output["distances"].gather(1, batch.labels[:, None])
        bound = (own - output["radius"] + MARGIN).relu().mean()
        loss = cross_entropy(output["logits"] / self.temperature, batch.labels) + self.weight * bound
        return Step(loss, output["logits"])
