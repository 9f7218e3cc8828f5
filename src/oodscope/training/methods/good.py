"""GOOD: confidence on outliers that is proven to be low in a whole ball around each of them."""

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.models.classifier.intervals import Interval, bounded_layers, box_around, logit_differences
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_RAMP = "ramp"


class GOOD(CrossEntropy):
    r"""Cross-entropy on known images, and a small upper bound on all differences of logits around outliers.

    .. math:: L = -\log p_y(x) + \kappa\,\log\Bigl(1 + \tfrac12 U^2\Bigr), \qquad
              U = \max_{a,b}\;\sup_{\lVert\delta\rVert_\infty\le\varepsilon} z_a(x_{\mathrm{out}}+\delta)
              - z_b(x_{\mathrm{out}}+\delta)

    with a bound on :math:`U` by interval propagation, within pixels of [0, 1]. Of each batch of outliers the share
    ``quantile`` with the smallest bounds is bounded so; the others are only pushed to equal logits at the outlier
    itself, without a ball, so that difficult outliers cost no accuracy. Radius and weight rise from 0 over the first
    part of the training, otherwise the network collapses to constant logits. The score is ``msp``;
    ``certified_confidence`` gives what is proven of an image, and the AUROC of that is a lower bound on the AUROC under
    any attack within the ball.

    The network must be a chain of layers with known bounds, such as ``plain_cnn_32``, trained by ``ceda`` before:
    ``train: [{recipe: ceda, epochs: 30}, {recipe: good}]``. The authors take 900 epochs of it.

    Parameters
    ----------
    weight : :math:`\kappa`, at its highest.
    epsilon : :math:`\varepsilon` in pixels of [0, 1], above 0; at its highest.
    quantile : share of the outliers that is bounded; .8 in GOOD80.
    ramp : share of the epochs over which weight and radius rise.
    """

    name: ClassVar[str] = "good"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Certifiably Adversarially Robust Detection of Out-of-Distribution Data",
        "Bitterwolf, Meinke & Hein",
        "NeurIPS 2020",
    )
    cost: ClassVar[float | None] = 4.0

    epochs: int = Field(default=60, gt=0)
    learning_rate: float = Field(default=1e-4, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    algorithm: Literal["sgd", "adam"] = "adam"
    ood_batch_size: int = Field(default=128, gt=0)
    weight: float = Field(default=1.0, ge=0)
    epsilon: float = 0.01
    quantile: float = Field(default=0.8, ge=0, le=1)
    ramp: float = Field(default=0.5, ge=0, le=1)

    @field_validator("epsilon")
    @classmethod
    def _check_radius(cls, epsilon: float) -> float:
        if not epsilon > 0:
            raise ValueError(f"must be above 0, not {epsilon:g}: without a radius nothing is proven; use ceda")
        return epsilon

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        bounded_layers(model)
        model.register_buffer(_RAMP, torch.zeros(()))
        return model

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        rising = self.ramp * self.epochs
        model.get_buffer(_RAMP).fill_(1.0 if rising <= 0 else min(1.0, epoch / rising))

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None and batch.scale is not None, "the loop gives each batch its outliers and scale"
        ramp = model.get_buffer(_RAMP)
        count = len(batch.images)
        logits = model(torch.cat([batch.images, batch.ood.images]))
        known, unknown = logits[:count], logits[count:]
        with torch.autocast(logits.device.type, enabled=False):
            box = box_around(batch.scale.to_pixels(batch.ood.images.float()), self.epsilon * ramp)
            inside = Interval(*(batch.scale.from_pixels(each) for each in box))
            widest = logit_differences(bounded_layers(model), inside).flatten(1).amax(dim=1)
            outliers = spread_loss(widest, unknown.float(), self.quantile)
        return Step(label_loss(known, batch) + self.weight * ramp * outliers, known)


def spread_loss(widest: Tensor, logits: Tensor, quantile: float) -> Tensor:
    r"""The mean of :math:`\log(1 + U^2/2)`: bounds for the share of outliers where they are smallest, else the logits'.

    Parameters
    ----------
    widest : proven :math:`U` of each outlier.
    logits : at the outliers themselves, of which the range is taken.
    """
    proven = int(quantile * len(widest))
    order = widest.argsort()
    plain = logits.amax(dim=1) - logits.amin(dim=1)
    spread = torch.cat([widest[order[:proven]], plain[order[proven:]]])
    return torch.log1p(spread.square() / 2).mean()
