"""ASCOOD: destroy the pixels that matter for the class, and call the result an outlier."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.network import evaluating
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step, TrainingFacts

_TINY = 1e-6


class Standardised(nn.Module):
    r"""Features of each image with mean 0 and standard deviation :math:`\sigma` in training; at test as they are."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation
        self.always = False

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"deviation": self.deviation}

    def forward(self, features: Tensor) -> Tensor:
        if not (self.training or self.always):
            return features
        exact = features.to(torch.promote_types(features.dtype, torch.float32))
        centred = exact - exact.mean(dim=1, keepdim=True)
        return self.deviation * centred / (exact.std(dim=1, keepdim=True) + _TINY)


class ASCOOD(CrossEntropy):
    r"""Cross-entropy on standardised features, and a flat prediction on images whose decisive pixels are spoilt.

    .. math:: L = \mathrm{CE}(z(x), y) + w\,\mathrm{KL}(u \Vert p(\tilde x)), \qquad
              z = W\,\sigma\frac{h - \bar h}{\mathrm{sd}(h)} + b

    The gradient of the true logit, of the network in evaluation mode, says which pixels matter: ``shuffle`` permutes
    them among themselves, ``gradient`` adds the gradient to the entries where it is largest. No outliers are needed.

    At test the head reads :math:`h` itself: standardising would undo whatever a detector scales. Standardised features
    sum to 0, so the sum of each row of :math:`W` would never be trained; it starts at 0 and stays there, and the class
    is then that of the standardised features but for the bias. The score is ``scale``. For CIFAR-100 the published
    settings are ``weight: 5``, ``share: 0.1`` and ``head_rate: 0.05``.

    Parameters
    ----------
    weight : :math:`w`.
    spoil : how images are spoilt.
    share : of the pixels (``shuffle``) or of all entries (``gradient``).
    length : of the step along the gradient, for ``gradient``.
    deviation : :math:`\sigma`.
    head_rate : the learning rate of the head, as a share of all others'.
    """

    name: ClassVar[str] = "ascood"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper("Going Beyond Conventional OOD Detection", "Regmi", "arXiv 2411.10794")
    cost: ClassVar[float | None] = 3.0
    detectors: ClassVar[tuple[str, ...]] = ("scale", "adascale_a", "msp")

    weight: float = Field(default=1.0, ge=0)
    spoil: Literal["shuffle", "gradient"] = "shuffle"
    share: float = Field(default=0.15, gt=0, le=1)
    length: float = Field(default=10.0, gt=0)
    deviation: float = Field(default=0.5, gt=0)
    head_rate: float = Field(default=1.0, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        def before(last: nn.Linear) -> nn.Module:
            with torch.no_grad():
                last.weight -= last.weight.mean(dim=1, keepdim=True)
            return nn.Sequential(Standardised(self.deviation), last)

        return replace_layer(model, before)

    def optimizer(self, model: nn.Module) -> Optimizer:
        layers = [part for part in model.modules() if isinstance(part, nn.Sequential) and len(part) == 2]
        head = [each for part in layers if isinstance(part[0], Standardised) for each in part[1].parameters()]
        return self.descent(model, head, lr=self.head_rate * self.learning_rate)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        spoilt = self.spoilt(batch, self._gradient(model, batch))
        logits = logits_of(model(torch.cat([batch.images, spoilt])))
        known, outliers = logits[: len(batch.labels)], logits[len(batch.labels) :]
        flat = -outliers.log_softmax(dim=1).mean() - math.log(logits.shape[1])
        return Step(label_loss(known, batch) + self.weight * flat, known)

    def spoilt(self, batch: Batch, gradient: Tensor) -> Tensor:
        """The images with the entries spoilt that matter most by ``gradient``."""
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        if self.spoil == "gradient":
            size = gradient.abs().flatten(1)
            places = size.topk(max(1, int(self.share * size.shape[1])), dim=1).indices
            step = torch.zeros_like(size).scatter(1, places, gradient.flatten(1).gather(1, places))
            return batch.images + self.length * step.view_as(gradient)
        matter = gradient.exp().sum(dim=1).flatten(1)
        count = max(1, int(self.share * matter.shape[1]))
        places = matter.topk(count, dim=1).indices
        order = torch.rand(len(places), count, generator=batch.draws, device=batch.draws.device).argsort(dim=1)
        sources = places.gather(1, order.to(places.device))
        pixels = batch.images.flatten(2)
        wide = (-1, pixels.shape[1], -1)
        moved = pixels.gather(2, sources[:, None].expand(*wide))
        return pixels.scatter(2, places[:, None].expand(*wide), moved).view_as(batch.images)

    def _gradient(self, model: nn.Module, batch: Batch) -> Tensor:
        """Of the true logit with respect to each image."""
        leaf = batch.images.detach().clone().requires_grad_(True)
        with torch.enable_grad(), evaluating(model), _standardising(model):
            own = logits_of(model(leaf)).gather(1, batch.labels[:, None]).sum()
            (gradient,) = torch.autograd.grad(own, leaf)
        return gradient.float()


@contextmanager
def _standardising(model: nn.Module) -> Iterator[None]:
    """Inside, features are standardised in evaluation mode too."""
    layers = [part for part in model.modules() if isinstance(part, Standardised)]
    for layer in layers:
        layer.always = True
    try:
        yield
    finally:
        for layer in layers:
            layer.always = False
