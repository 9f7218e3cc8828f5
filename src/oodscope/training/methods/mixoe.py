"""MixOE: mixtures of known images and outliers, with labels mixed to match."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.cutmix import drawn_box
from oodscope.training.methods.mixup import drawn_share
from oodscope.training.recipe import Batch, Step


class MixOE(CrossEntropy):
    r"""Cross-entropy, and confidence that falls as an outlier takes over.

    .. math:: L = \mathrm{CE}(z(x), y) + w\,\mathrm{CE}\bigl(z(\bar x),\;
              \lambda\,\mathrm{onehot}(y) + (1-\lambda)\,u\bigr)

    A patch of an outlier is put into each image (``cutmix``), or the two are averaged (``mixup``);
    :math:`\lambda \sim \mathrm{Beta}(\alpha, \beta)` once for each batch, then the share of the image that is left, and
    :math:`u` is uniform. The defaults fine-tune a trained network, with the authors' Beta(1, 1); OpenOOD draws from
    Beta(.1, 1).

    Parameters
    ----------
    mixing : how an image and an outlier are mixed.
    alpha, beta : of the distribution of the known image's share.
    weight : :math:`w`, what the mixtures count.
    """

    name: ClassVar[str] = "mixoe"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Mixture Outlier Exposure: Towards Out-of-Distribution Detection in Fine-grained Environments",
        "Zhang et al.",
        "WACV 2023",
    )
    cost: ClassVar[float | None] = 2.0

    epochs: int = Field(default=10, gt=0)
    learning_rate: float = Field(default=0.001, gt=0)
    ood_batch_size: int = Field(default=128, gt=0)
    mixing: Literal["cutmix", "mixup"] = "cutmix"
    alpha: float = Field(default=1.0, gt=0)
    beta: float = Field(default=1.0, gt=0)
    weight: float = Field(default=1.0, ge=0)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        count = min(len(batch.images), len(batch.ood.images))
        known, outliers = batch.images[:count], batch.ood.images[:count]
        share = drawn_share(batch, self.alpha, self.beta)
        if self.mixing == "cutmix":
            inside = drawn_box(batch, share)
            share, mixed = 1 - inside.float().mean(), torch.where(inside, outliers, known)
        else:
            mixed = share * known + (1 - share) * outliers
        logits = logits_of(model(batch.images))
        soft = soft_loss(logits_of(model(mixed)), batch.labels[:count], share)
        return Step(label_loss(logits, batch) + self.weight * soft, logits)


def soft_loss(logits: Tensor, labels: Tensor, share: Tensor) -> Tensor:
    """Cross-entropy towards the label, which counts ``share``, and the uniform distribution, which counts the rest."""
    return share * cross_entropy(logits, labels) - (1 - share) * logits.log_softmax(dim=1).mean()
