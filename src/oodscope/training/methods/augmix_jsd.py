"""AugMix with its consistency loss: three views of an image should get the same class."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.training.augment.augmix import AugMix
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Role, Step

VIEWS = 3


class AugMixJSD(CrossEntropy):
    r"""Cross-entropy on the clean view, and the Jensen-Shannon divergence of three.

    .. math:: L = \mathrm{CE}(z, y) + \lambda\,\frac13 \sum_{v=1}^3 \mathrm{KL}(p_v \Vert M), \qquad
              M = \frac13 \sum_v p_v

    The clean view is ``augment``'s; the two others are AugMix of it. All three go through the network as one batch.
    Without the divergence AugMix is an augmentation of any recipe: ``augment: [crop, augmix]``.

    Parameters
    ----------
    weight : :math:`\lambda`.
    mix : how the two other views are made.
    """

    name: ClassVar[str] = "augmix_jsd"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", "Hendrycks et al.", "ICLR 2020"
    )
    cost: ClassVar[float | None] = 3.0

    weight: float = Field(default=12.0, ge=0)
    mix: AugMix = AugMix()

    def view(self, pixels: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        clean = self.augment(pixels, generator)
        return torch.cat([clean, self.mix(clean, generator), self.mix(clean, generator)])

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        views = logits_of(model(batch.images)).chunk(VIEWS)
        return Step(label_loss(views[0], batch) + self.weight * divergence(views), views[0])


def divergence(views: tuple[Tensor, ...]) -> Tensor:
    """The mean Jensen-Shannon divergence of softmax distributions from logits ``[B, C]``, in float32."""
    logs = torch.stack([view.float().log_softmax(dim=1) for view in views])
    middle = logs.exp().mean(dim=0).clamp(1e-7, 1.0).log()
    return (logs.exp() * (logs - middle)).sum(dim=2).mean()
