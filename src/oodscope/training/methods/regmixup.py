"""RegMixup: Mixup beside the clean images, as a regulariser."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.mixup import drawn_partners, drawn_share, mixed_loss
from oodscope.training.recipe import Batch, Step


class RegMixup(CrossEntropy):
    r"""Cross-entropy on clean images and on strong mixtures of them, in equal parts.

    .. math:: L = \tfrac12\bigl(\mathrm{CE}(z(x), y) + \lambda\,\mathrm{CE}(z(\bar x), y) +
              (1-\lambda)\,\mathrm{CE}(z(\bar x), y')\bigr), \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    Clean and mixed images go through the network as one batch. The paper writes the sum of both terms; the authors'
    code and OpenOOD take the mean over all images, which is half of it.

    Parameters
    ----------
    alpha : :math:`\alpha`; 20 for CIFAR-10, 10 for larger sets: always strong mixtures.
    """

    name: ClassVar[str] = "regmixup"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "RegMixup: Mixup as a Regularizer Can Surprisingly Improve Accuracy and Out-of-Distribution Robustness",
        "Pinto et al.",
        "NeurIPS 2022",
    )
    cost: ClassVar[float | None] = 2.0

    alpha: float = Field(default=20.0, gt=0)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        share, partner = drawn_share(batch, self.alpha, self.alpha), drawn_partners(batch)
        mixed = share * batch.images + (1 - share) * batch.images[partner]
        clean, blurred = logits_of(model(torch.cat([batch.images, mixed]))).chunk(2)
        regular = mixed_loss(blurred, batch.labels, batch.labels[partner], share)
        return Step((label_loss(clean, batch) + regular) / 2, clean)
