"""CEDA and ACET: low confidence on outliers, and at the worst image in a ball around each of them."""

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.perturbation import Attack, Ball
from oodscope.training.recipe import Batch, Step

_PAPER = Paper(
    "Why ReLU Networks Yield High-Confidence Predictions Far Away From the Training Data "
    "and How to Mitigate the Problem",
    "Hein, Andriushchenko & Bitterwolf",
    "CVPR 2019",
)


def confidence(logits: Tensor, of: Literal["log_max", "uniform"]) -> Tensor:
    r"""What is minimised on outliers, one number per image; both are 0 where all classes are equally likely.

    ``log_max`` is :math:`\log\max_k p_k + \log K`, ``uniform`` is :math:`\mathrm{KL}(\mathrm{uniform}\,\Vert\,p)`.
    """
    logs = logits.float().log_softmax(dim=1)
    chance = math.log(logits.shape[1])
    return logs.amax(dim=1) + chance if of == "log_max" else -logs.mean(dim=1) - chance


class CEDA(CrossEntropy):
    r"""Cross-entropy on known images and low confidence on outliers.

    .. math:: L = -\log p_y(x) + \kappa\,\bigl(\log \max_k p_k(x_{\mathrm{out}}) + \log K\bigr)

    Known images and outliers go through the network as one batch. The defaults fine-tune a trained network. The paper's
    outliers are noise and permuted images; those of the released networks that EvG attacks, and ours, are real images.
    The score is ``msp``.

    Parameters
    ----------
    weight : :math:`\kappa`; at 0 the outliers are not shown, which is cross-entropy.
    outlier_loss : ``log_max`` as above, or ``uniform`` for the divergence from the uniform distribution.
    """

    name: ClassVar[str] = "ceda"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = _PAPER
    cost: ClassVar[float | None] = 2.0

    epochs: int = Field(default=10, gt=0)
    learning_rate: float = Field(default=0.01, gt=0)
    ood_batch_size: int = Field(default=128, gt=0)
    weight: float = Field(default=1.0, ge=0)
    outlier_loss: Literal["log_max", "uniform"] = "log_max"

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        if not self.weight:
            return super().loss(model, batch)
        outliers = self.shown_outliers(model, batch)
        logits = logits_of(model(torch.cat([batch.images, outliers])))
        known, unknown = logits[: len(batch.images)], logits[len(batch.images) :]
        return Step(label_loss(known, batch) + self.weight * confidence(unknown, self.outlier_loss).mean(), known)

    def shown_outliers(self, model: nn.Module, batch: Batch) -> Tensor:
        """The outliers of a step, as the network sees them."""
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        return batch.ood.images


class ACET(CEDA):
    r"""Low confidence at the worst image in an l-inf ball around each outlier.

    .. math:: L = -\log p_y(x) + \kappa\max_{\lVert\delta\rVert_\infty\le\varepsilon}
              \mathrm{KL}\bigl(\mathrm{uniform}\,\Vert\,p(x_{\mathrm{out}}+\delta)\bigr)

    The loss of the released networks that EvG attacks; the paper's own is ``outlier_loss: log_max``. They take 40 steps
    of 2/41 of the radius without a random start. Attacked in evaluation mode; of all images visited the worst is shown.

    Parameters
    ----------
    epsilon : :math:`\varepsilon` in pixels of [0, 1], above 0: a radius of 0 is the recipe ``ceda``.
    attack_steps : of the ascent; 0 is CEDA with the same loss of outliers.
    attack_step : length of a step as a share of the radius.
    """

    name: ClassVar[str] = "acet"
    recordable: ClassVar[bool] = True
    cost: ClassVar[float | None] = 9.0  # ten steps of about .7 of an image forward and backward, and CEDA

    outlier_loss: Literal["log_max", "uniform"] = "uniform"
    epsilon: float = 0.01
    attack_steps: int = Field(default=10, ge=0)
    attack_step: float = Field(default=0.25, gt=0)

    @field_validator("epsilon")
    @classmethod
    def _check_radius(cls, epsilon: float) -> float:
        if not epsilon > 0:
            raise ValueError(f"must be above 0, not {epsilon:g}: without a radius this is the recipe ceda")
        return epsilon

    def shown_outliers(self, model: nn.Module, batch: Batch) -> Tensor:
        def objective(images: Tensor) -> Tensor:
            return confidence(logits_of(model(images)), self.outlier_loss)

        attack = Attack(Ball("linf", self.epsilon), self.attack_steps, self.attack_step * self.epsilon, keep="best")
        return attack(model, objective, super().shown_outliers(model, batch), batch.scale, batch.draws)
