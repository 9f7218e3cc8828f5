"""CSI without labels: turned copies of an image repel it, and the turn itself is predicted."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim import Adam, Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import PROJECTION, ROTATION, TURNS
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.loop.lars import LARS
from oodscope.training.loop.parts import Parts
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.csi import HEAD_RATE, TURNED_VIEW, turn_labels, turned
from oodscope.training.methods.palm import contrast
from oodscope.training.recipe import Batch, Role, Step, TrainingFacts


class ShiftHead(nn.Module):
    """The linear head, which learns from the features as they are, a projection, and the logits of four turns."""

    def __init__(self, main: nn.Linear, size: int) -> None:
        super().__init__()
        self.main, self.size = main, size
        width = main.in_features
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))
        self.shift = nn.Linear(width, TURNS)

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"main": self.main, "size": self.size}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        logits = self.main(features.detach() if self.training else features)
        return {"logits": logits, PROJECTION: self.projection(features), ROTATION: self.shift(features)}


class CSIUnlabelled(CrossEntropy):
    r"""A contrast in which only two views of an image in the same turn attract, and a prediction of the turn.

    .. math:: L = L_{\mathrm{NT\text{-}Xent}}(8B\ \text{views};\tau) + \mathrm{CE}(r, k)

    Each image is shown twice, mirrored at random, in four quarter turns, with crops and colours varied. No label
    changes a feature: a linear layer learns the classes beside it. The authors take 1,000 epochs of LARS at a rate that
    is warmed up to 1. The score compares with all training images in every turn (detector ``csi_unlabelled``).

    Parameters
    ----------
    temperature : :math:`\tau`.
    size : of the projection.
    """

    name: ClassVar[str] = "csi_unlabelled"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances",
        "Tack et al.",
        "NeurIPS 2020",
    )
    cost: ClassVar[float | None] = 8.0
    views: ClassVar[int] = 2
    detectors: ClassVar[tuple[str, ...]] = ("csi_unlabelled", "knn")

    epochs: int = Field(default=60, gt=0)
    learning_rate: float = Field(default=1.0, gt=0)
    weight_decay: float = Field(default=1e-6, ge=0)
    warmup_epochs: float = Field(default=10.0, ge=0)
    augment: AnyAugment = TURNED_VIEW
    temperature: float = Field(default=0.5, gt=0)
    size: int = Field(default=128, gt=1)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_layer(model, lambda last: ShiftHead(last, self.size))

    def view(self, pixels: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        return self.augment(turned(pixels, generator), generator)

    def optimizer(self, model: nn.Module) -> Optimizer:
        head = next(part for part in model.modules() if isinstance(part, ShiftHead))
        own = list(head.main.parameters())
        rest = [each for each in model.parameters() if not any(each is held for held in own)]
        main = LARS(rest, lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay)
        return Parts([main, Adam(own, lr=HEAD_RATE)])

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output = model(batch.images)
        count, labels = len(batch.images), batch.labels
        first = output["logits"][: len(labels)]
        itself = turn_labels(torch.arange(len(labels), device=labels.device), len(labels), count)
        turns = turn_labels(torch.zeros_like(labels), 1, count)
        with torch.autocast(first.device.type, enabled=False):
            apart = contrast(normalize(output[PROJECTION].float()), itself, self.temperature)
        return Step(apart + cross_entropy(output[ROTATION], turns) + label_loss(first, batch), first)
