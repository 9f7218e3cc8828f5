"""A training method: cross-entropy on logits that a trained temperature divides."""

import torch
from pydantic import Field
from torch import nn

from oodscope import Recipe
from oodscope.training.recipe import Step


class Warm(nn.Module):
    """A network, its logits over a temperature of its own."""

    def __init__(self, inner, start):
        super().__init__()
        self.inner = inner
        self.temperature = nn.Parameter(torch.tensor(start))

    def forward(self, images):
        return self.inner(images) / self.temperature.abs().clamp(min=0.1)


class WarmLogits(Recipe):
    """Cross-entropy; the temperature learns too.

    Parameters
    ----------
    start : the temperature before the first step.
    """

    name = "warm_logits"

    start: float = Field(default=2.0, gt=0)

    def prepare(self, model, facts):
        return Warm(model, self.start)

    def loss(self, model, batch):
        logits = model(batch.images)
        return Step(nn.functional.cross_entropy(logits, batch.labels), logits)
