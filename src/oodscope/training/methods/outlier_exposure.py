"""Outlier exposure: be sure of the known classes, and of none where an outlier is shown."""

import math
from typing import ClassVar, Self

import torch
from pydantic import Field
from torch import nn

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Recipe, Step


class OutlierExposure(CrossEntropy):
    r"""Cross-entropy on known images and a flat prediction on outliers (Hendrycks et al., ICLR 2019).

    .. math:: L = -\log p_y(x) + \lambda\,\mathrm{KL}(\mathrm{uniform} \,\Vert\, p(x_{\mathrm{out}}))

    Known images and outliers go through the network as one batch. The defaults are the authors' for fine-tuning a
    trained network: ``train(trained.model, OutlierExposure(), ..., ood_train=outliers)`` with 10 epochs at learning
    rate .001 and two outliers beside each image. Trained from scratch it takes their 100 epochs at .1.

    Parameters
    ----------
    weight : :math:`\lambda`, what the outliers count.
    """

    name: ClassVar[str] = "outlier_exposure"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Deep Anomaly Detection with Outlier Exposure", "Hendrycks, Mazeika & Dietterich", "ICLR 2019"
    )
    cost: ClassVar[float | None] = 3.0

    epochs: int = Field(default=10, gt=0)
    learning_rate: float = Field(default=0.001, gt=0)
    ood_batch_size: int = Field(default=256, gt=0)
    weight: float = Field(default=0.5, ge=0)

    @classmethod
    def after(cls, recipe: Recipe, *, epochs: int = 5, share: float = 0.1, weight: float = 1.0) -> Self:
        """How cross-validation goes on from a network trained by ``recipe``, with all else as it was.

        ``share`` of each batch's size is added in outliers, so that an epoch sees as many as that share of the
        training images; no epoch is left out.
        """
        kept = {name: getattr(recipe, name) for name in Recipe.model_fields}
        size = max(1, round(share * recipe.batch_size))
        return cls(**{**kept, "epochs": epochs, "patience": 0, "ood_batch_size": size, "weight": weight})

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        logits = logits_of(model(torch.cat([batch.images, batch.ood.images])))
        known, unknown = logits[: len(batch.images)], logits[len(batch.images) :]
        flat = -unknown.log_softmax(dim=1).mean() - math.log(logits.shape[1])
        return Step(label_loss(known, batch) + self.weight * flat, known)
