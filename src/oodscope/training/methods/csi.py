"""CSI, first stage: contrastive learning in which turned copies of an image are other classes."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.optim import SGD, Adam, Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING, TURNS
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.augment.base import Chain
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.loop.parts import Parts
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.palm import contrast
from oodscope.training.recipe import Batch, Role, Step, TrainingFacts

HEAD_RATE = 1e-3
"""Of Adam, for the linear layer that reads the class off the features."""

_FLOOR = 1e-8

TURNED_VIEW = Chain(steps=(ResizedCrop(flip=False), ColourJitter()))
"""Crop and colours; images are mirrored before they are turned, because a mirrored turn is another turn."""


class ContrastHead(nn.Module):
    """The linear head, which learns from the features as they are, and a projection to the unit sphere."""

    def __init__(self, main: nn.Linear, size: int) -> None:
        super().__init__()
        self.main, self.size = main, size
        width = main.in_features
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"main": self.main, "size": self.size}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        projected = self.projection(features)
        with torch.autocast(features.device.type, enabled=False):
            embedding = normalize(projected.to(torch.promote_types(projected.dtype, torch.float32)))
        return {"logits": self.main(features.detach() if self.training else features), EMBEDDING: embedding}


class CSI(CrossEntropy):
    r"""A supervised contrast between images, of which each turn is a class of its own.

    .. math:: L = -\frac1{8B}\sum_i \frac1{\lvert P_i\rvert}\sum_{j\in P_i}
              \log\frac{e^{\langle v_i,v_j\rangle/\tau}}{\sum_{a\ne i} e^{\langle v_i,v_a\rangle/\tau}}

    over two copies of each image in four quarter turns; :math:`P_i` are the others with its class and turn, without the
    image itself. A linear layer learns the class from the features without changing them. The second stage,
    ``csi_heads``, then learns the heads that the score needs: ``train: [{recipe: csi}, {recipe: csi_heads}]``.

    The authors train 700 epochs with LARS; here it is SGD, with their warm-up of 10 epochs. OpenOOD's 100 epochs are
    ``epochs: 100``. Colours are varied before images are normalised (see ``ColourJitter``); in OpenOOD's code, after.
    The whole released form: ``parity: true``, ``warmup_epochs: 0``, ``epochs: 100`` and
    ``augment: [{kind: resized_crop, flip: false}, {kind: jitter, normalised: true}]``.

    Parameters
    ----------
    temperature : :math:`\tau`.
    size : of the projection.
    parity : count each image among its own positives, as the code behind the published row does.
    """

    name: ClassVar[str] = "csi"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances",
        "Tack et al.",
        "NeurIPS 2020",
    )
    cost: ClassVar[float | None] = 8.0
    views: ClassVar[int] = 2

    epochs: int = Field(default=700, gt=0)
    batch_size: int = Field(default=64, gt=0)
    weight_decay: float = Field(default=1e-6, ge=0)
    warmup_epochs: float = Field(default=10.0, ge=0)
    augment: AnyAugment = TURNED_VIEW
    temperature: float = Field(default=0.07, gt=0)
    size: int = Field(default=128, gt=1)
    parity: bool = False

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_layer(model, lambda last: ContrastHead(last, self.size))

    def view(self, pixels: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        return self.augment(turned(pixels, generator), generator)

    def optimizer(self, model: nn.Module) -> Optimizer:
        head = [each for part in model.modules() if isinstance(part, ContrastHead) for each in part.main.parameters()]
        rest = [each for each in model.parameters() if not any(each is held for held in head)]
        main = SGD(rest, lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay)
        return Parts([main, Adam(head, lr=HEAD_RATE)])

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output = model(batch.images)
        upright = output["logits"][: len(batch.labels)]
        labels = turn_labels(batch.labels, upright.shape[1], len(batch.images))
        with torch.autocast(upright.device.type, enabled=False):
            loss = (released_contrast if self.parity else contrast)(output[EMBEDDING], labels, self.temperature)
        return Step(loss + label_loss(upright, batch), upright)


def released_contrast(points: Tensor, classes: Tensor, temperature: float) -> Tensor:
    """OpenOOD's form: each point is one of its own class, with probability 0, and 1e-8 is added to probabilities."""
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    shares = (points @ points.T / temperature).masked_fill(itself, -torch.inf).softmax(dim=1)
    same = classes[:, None] == classes
    return -((shares + _FLOOR).log() * same).sum(dim=1).div(same.sum(dim=1)).mean()


def turned(pixels: Tensor, generator: torch.Generator) -> Tensor:
    """Square images, each mirrored or not, in four quarter turns counter-clockwise: one turn of all after the other."""
    mirrored = torch.rand(len(pixels), generator=generator, device=generator.device).to(pixels.device) < 0.5
    pixels = torch.where(mirrored[:, None, None, None], pixels.flip(3), pixels)
    return torch.cat([pixels.rot90(turn, (2, 3)) for turn in range(TURNS)])


def turn_labels(labels: Tensor, num_classes: int, count: int) -> Tensor:
    """Classes of class and turn together, ``turn * num_classes + label``, for ``count`` turned images."""
    turns = torch.arange(TURNS, device=labels.device).repeat_interleave(count // TURNS)
    return turns * num_classes + labels.repeat(count // len(labels))
