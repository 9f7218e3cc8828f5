"""ConfBranch: a second output says how sure the network is, and may buy hints."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import CONFIDENCE, with_branches
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Batch, Step, TrainingFacts

_WEIGHT = "confidence_weight"
_TINY = 1e-12


class ConfBranch(CrossEntropy):
    r"""The network asks for hints where it is unsure, and pays for them.

    .. math:: L = -\log\bigl(c' p_y + 1 - c'\bigr) - \lambda \log c, \qquad c' = \beta c + 1 - \beta

    with the confidence :math:`c \in (0, 1)` of a second linear layer and a fair coin :math:`\beta` for each image, so
    that half of them get no hints. After each step :math:`\lambda` falls by 1 % where :math:`-\log c` is below the
    budget on average, and rises otherwise; it is a buffer of the network. The authors also train 200 epochs with
    ``cutout``; OpenOOD, whose published row this is, does not.

    Parameters
    ----------
    weight : :math:`\lambda` at first.
    budget : the price of hints that :math:`\lambda` is steered to.
    """

    name: ClassVar[str] = "conf_branch"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Learning Confidence for Out-of-Distribution Detection in Neural Networks",
        "DeVries & Taylor",
        "arXiv 1802.04865",
    )
    detectors: ClassVar[tuple[str, ...]] = ("conf_branch",)

    weight: float = Field(default=0.1, gt=0)
    budget: float = Field(default=0.3, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        model = with_branches(model, {CONFIDENCE: 1})
        model.register_buffer(_WEIGHT, torch.tensor(self.weight))
        return model

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        output = model(batch.images)
        coins = torch.rand(len(batch.labels), generator=batch.draws, device=batch.draws.device) < 0.5
        weight = model.get_buffer(_WEIGHT)
        hinted, price = hinted_loss(
            output["logits"], output[CONFIDENCE].flatten(), batch.labels, coins.to(batch.images.device)
        )
        loss = hinted + weight.clone() * price
        with torch.no_grad():
            weight.copy_(torch.where(price < self.budget, weight / 1.01, weight / 0.99))
        return Step(loss, output["logits"])


def hinted_loss(logits: Tensor, confidence: Tensor, labels: Tensor, coins: Tensor) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy after hints, and the mean price of hints, in float32.

    Parameters
    ----------
    confidence : logits of the confidence, ``[B]``.
    coins : where hints may be bought.
    """
    own = logits.float().softmax(dim=1).gather(1, labels[:, None]).flatten().clamp(min=_TINY)
    bought = coins * torch.sigmoid(-confidence.float())  # 1 - c' without cancellation
    hinted = -torch.log(own + bought * (1 - own)).mean()
    return hinted, softplus(-confidence.float()).mean()
