"""Prototypes: unit embeddings, compared with those of the classes; what CIDER, NPOS, PALM and ReweightOOD share."""

import math
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.errors import ModelError
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.models.classifier.last_layer import LastLayer
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.augment.base import Chain
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_WALK = 256
_LAST_FACTOR = 1e-3


class Prototypes(LastLayer):
    r"""A projection to the unit sphere, and prototypes of the classes on it.

    .. math:: f = \frac{V_2\max(0, V_1 h + a_1) + a_2}{\lVert\cdot\rVert}, \qquad
              z_c = \log\sum_{j \in c} e^{\langle f, \mu_j\rangle/\tau}

    The prototypes are a buffer; with one of each class :math:`z_c = \langle f, \mu_c\rangle/\tau`. The features of the
    network are :math:`h`, before the projection.

    Parameters
    ----------
    width : of :math:`h`.
    size : of the embedding.
    each : prototypes of a class; number ``j`` belongs to class ``j % num_classes``.
    temperature : :math:`\tau`.
    """

    def __init__(self, width: int, num_classes: int, size: int, temperature: float, each: int = 1) -> None:
        super().__init__()
        self.width, self.num_classes, self.temperature = width, num_classes, temperature
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))
        self.prototypes: Tensor
        self.register_buffer("prototypes", normalize(torch.rand(each * num_classes, size)))

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        count, size = self.prototypes.shape
        return {
            "width": self.width,
            "num_classes": self.num_classes,
            "size": size,
            "temperature": self.temperature,
            "each": count // self.num_classes,
        }

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        projected = self.projection(features)
        with torch.autocast(features.device.type, enabled=False):
            embedding = normalize(projected.to(self.prototypes.dtype))
            similar = (embedding @ self.prototypes.T / self.temperature).view(len(embedding), -1, self.num_classes)
            logits = similar[:, 0] if similar.shape[1] == 1 else similar.logsumexp(dim=1)
        return {"logits": logits, EMBEDDING: embedding}


class PrototypeRecipe(CrossEntropy):
    """Base of methods that learn embeddings from two views of each image.

    Two random crops of each image with their colours varied go through the network together. The rate rises over
    ``warmup_epochs`` and falls along a cosine to a thousandth; it is never negative, and it reaches ``learning_rate``.
    In OpenOOD's code, and that of its authors, the rates of the first epoch are below zero.

    Parameters
    ----------
    temperature : of the similarities of an embedding and the prototypes.
    size : of the embedding.
    train_only : names of what is trained of a network that is fine-tuned, such as ``[layer4]``, beside the new layers;
        all else keeps its weights and statistics. Empty trains everything.
    """

    views: ClassVar[int] = 2
    cost: ClassVar[float | None] = 2.0

    batch_size: int = Field(default=512, gt=0)
    learning_rate: float = Field(default=0.5, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    warmup_epochs: float = Field(default=10.0, ge=0)
    augment: AnyAugment = Chain(steps=(ResizedCrop(area=(0.2, 1.0)), ColourJitter()))
    temperature: float = Field(default=0.1, gt=0)
    size: int = Field(default=128, gt=1)
    train_only: tuple[str, ...] = ()

    def layer(self, width: int, facts: TrainingFacts) -> Prototypes:
        """The last layer of a network with features of this width."""
        return Prototypes(width, facts.num_classes, self.size, self.temperature)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        model = replace_layer(model, lambda last: self.layer(last.in_features, facts))
        if self.train_only:
            freeze_all_but(model, self.train_only)
        return model

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """A linear warm-up, then a cosine to a thousandth, step by step."""
        warmup, total = round(self.warmup_epochs * steps_per_epoch), self.total_steps(steps_per_epoch)
        if step < warmup:
            return (step + 1) / warmup
        done = (step - warmup) / max(1, total - warmup)
        return _LAST_FACTOR + (1 - _LAST_FACTOR) * 0.5 * (1 + math.cos(math.pi * done))


def freeze_all_but(model: nn.Module, names: tuple[str, ...]) -> None:
    """Freeze what is neither in one of the named parts nor new."""
    parts = dict(model.named_modules())
    if missing := [name for name in names if name not in parts]:
        known = ", ".join(name for name, _ in model.named_children())
        raise ModelError(f"this network has no part {missing[0]!r}: train_only names some of {known}")
    model.requires_grad_(False)
    for part in (*(parts[name] for name in names), prototypes_of(model)):
        part.requires_grad_(True)


def prototypes_of(model: nn.Module) -> Prototypes:
    """The last layer that one of these recipes prepared."""
    layer = next((part for part in model.modules() if isinstance(part, Prototypes)), None)
    if layer is None:
        raise ModelError("this network was prepared by no recipe with prototypes (cider, npos, palm, reweightood)")
    return layer


@torch.no_grad()
def class_means(model: nn.Module, streams: "Streams") -> Tensor:
    """The direction of the mean embedding of every class over all training images, unchanged, ``[C, size]``."""
    layer = prototypes_of(model)
    sums = torch.zeros(layer.num_classes, layer.prototypes.shape[1], device=layer.prototypes.device)
    for batch in streams.train.walk(_WALK):
        sums.index_add_(0, batch.labels, model(batch.images)[EMBEDDING].to(sums.dtype))
    return normalize(sums)
