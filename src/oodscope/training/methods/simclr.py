"""SimCLR, SSD and SupCon: contrastive learning, whose features distances and neighbours are taken of."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.augment.base import Chain
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.csi import ContrastHead
from oodscope.training.methods.palm import contrast
from oodscope.training.recipe import Batch, Step, TrainingFacts

_SUPCON = 0.07
"""SSD's code, which is SupCon's, multiplies the loss by the temperature over this."""


class SimCLR(CrossEntropy):
    r"""Two views of an image attract each other, and repel all other images of the batch.

    .. math:: L = -\frac1{2B}\sum_i\log\frac{e^{\langle v_i, v_{i'}\rangle/\tau}}
              {\sum_{a\ne i}e^{\langle v_i, v_a\rangle/\tau}}

    with unit projections :math:`v` of the features and :math:`i'` the other view of the same image. No label changes a
    feature: a linear layer beside the projection learns the classes from features that it does not move, so that the
    network has logits and an accuracy. The scores are of the features, ``knn`` and ``ssd``.

    Parameters
    ----------
    temperature : :math:`\tau`.
    size : of the projection.
    head_rate : learning rate of the linear layer.
    """

    name: ClassVar[str] = "simclr"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "A Simple Framework for Contrastive Learning of Visual Representations", "Chen et al.", "ICML 2020"
    )
    cost: ClassVar[float | None] = 2.0
    views: ClassVar[int] = 2
    detectors: ClassVar[tuple[str, ...]] = ("knn", "ssd")

    batch_size: int = Field(default=512, gt=0)
    learning_rate: float = Field(default=0.5, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    warmup_epochs: float = Field(default=10.0, ge=0)
    augment: AnyAugment = Chain(steps=(ResizedCrop(area=(0.2, 1.0)), ColourJitter()))
    temperature: float = Field(default=0.5, gt=0)
    size: int = Field(default=128, gt=1)
    head_rate: float = Field(default=0.1, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_layer(model, lambda last: ContrastHead(last, self.size))

    def optimizer(self, model: nn.Module) -> Optimizer:
        head = next(part for part in model.modules() if isinstance(part, ContrastHead))
        return self.descent(model, head.main.parameters(), lr=self.head_rate)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output = model(batch.images)
        first = output["logits"][: len(batch.labels)]
        with torch.autocast(first.device.type, enabled=False):
            loss = self.contrast(output[EMBEDDING], batch.labels)
        return Step(loss + label_loss(first, batch), first)

    def contrast(self, embedding: Tensor, labels: Tensor) -> Tensor:
        """The contrastive loss of the unit projections of all views, one view of all images after the other."""
        itself = torch.arange(len(labels), device=labels.device)
        return contrast(embedding, itself.repeat(len(embedding) // len(labels)), self.temperature)


class SSD(SimCLR):
    r"""SimCLR as SSD trains it: its loss times :math:`\tau/.07`, which makes the rate 7 times as large as it looks.

    The authors take ResNet-50 and 500 epochs, and judge by one Gaussian of all features, without labels (``ssd``).
    """

    name: ClassVar[str] = "ssd"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "SSD: A Unified Framework for Self-Supervised Outlier Detection", "Sehwag, Chiang & Mittal", "ICLR 2021"
    )
    detectors: ClassVar[tuple[str, ...]] = ("ssd", "knn")

    def contrast(self, embedding: Tensor, labels: Tensor) -> Tensor:
        return self.temperature / _SUPCON * super().contrast(embedding, labels)


class SupCon(SimCLR):
    """The supervised form: all images of a class attract each other."""

    name: ClassVar[str] = "supcon"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper("Supervised Contrastive Learning", "Khosla et al.", "NeurIPS 2020")

    temperature: float = Field(default=0.1, gt=0)

    def contrast(self, embedding: Tensor, labels: Tensor) -> Tensor:
        return contrast(embedding, labels.repeat(len(embedding) // len(labels)), self.temperature)
