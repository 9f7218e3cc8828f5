"""MCD: two heads that agree on known images and are driven apart on outliers."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import SECOND, with_branches
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step, TrainingFacts


class MCD(CrossEntropy):
    r"""Cross-entropy of two heads, and a gap between their entropies on outliers.

    .. math:: L = \mathrm{CE}(z^1, y) + \mathrm{CE}(z^2, y)
              + \lambda\max\Bigl(0,\; m - \frac1N\sum_u\bigl[H(p^1(u)) - H(p^2(u))\bigr]\Bigr)

    Entropies are those over the classes of one image; in OpenOOD's code they are taken over the images of a batch. The
    last epochs see outliers, in one pass with known images; before that there are none. The gap cannot exceed
    :math:`\log C`. The score is the distance of the two predictions (detector ``mcd``); the class is the first head's.
    The weights of the last epoch are the ones to keep: the best on ID validation images come before the outliers.

    Parameters
    ----------
    weight : :math:`\lambda`.
    margin : :math:`m`.
    outlier_epochs : how many of the last epochs see outliers.
    parity : take entropies over the images of a batch, as the code behind the published rows does.
    """

    name: ClassVar[str] = "mcd"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Unsupervised Out-of-Distribution Detection by Maximum Classifier Discrepancy", "Yu & Aizawa", "ICCV 2019"
    )
    cost: ClassVar[float | None] = 1.22
    detectors: ClassVar[tuple[str, ...]] = ("mcd", "msp")

    ood_batch_size: int = Field(default=256, gt=0)
    weight: float = Field(default=1.0, ge=0)
    margin: float = Field(default=1.2, gt=0)
    outlier_epochs: int = Field(default=11, ge=0)
    parity: bool = False

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return with_branches(model, {SECOND: facts.num_classes})

    def phase(self, epoch: int) -> int:
        """Whether outliers are shown."""
        return int(epoch >= self.epochs - self.outlier_epochs)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        count = len(batch.labels)
        exposed = bool(self.phase(batch.epoch))
        output = model(torch.cat([batch.images, batch.ood.images]) if exposed else batch.images)
        first, second = output["logits"], output[SECOND]
        loss = label_loss(first[:count], batch) + label_loss(second[:count], batch)
        if exposed:
            apart = gap(first[count:], second[count:], dim=0 if self.parity else 1)
            loss = loss + self.weight * (self.margin - apart).relu()
        return Step(loss, first[:count])


def gap(first: Tensor, second: Tensor, dim: int = 1) -> Tensor:
    """The mean difference of the entropies of two heads ``[N, C]``, over the classes of each image."""
    return (_entropy(first, dim) - _entropy(second, dim)).mean()


def _entropy(logits: Tensor, dim: int) -> Tensor:
    logs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=dim)
    return -(logs.exp() * logs).sum(dim=dim)
