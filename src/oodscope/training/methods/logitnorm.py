"""LogitNorm: cross-entropy on logits of one length."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.base.paper import Paper
from oodscope.models.classifier.new_head import last_linear
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step, TrainingFacts

_TINY = 1e-7


class LogitNorm(CrossEntropy):
    r"""Cross-entropy on logits of constant norm: confidence cannot grow by length alone.

    .. math:: L = \mathrm{CE}\Bigl(\frac{z}{(\lVert z\rVert + 10^{-7})\,\tau}, y\Bigr)

    At test the logits are taken as they are, as in the authors' code. At :math:`z = 0` the gradient is of size
    :math:`10^8`, so a head that starts from zeros is refused.

    Parameters
    ----------
    temperature : :math:`\tau`; .04 in the paper for CIFAR-10, and in OpenOOD for all sets.
    """

    name: ClassVar[str] = "logitnorm"
    recordable: ClassVar[bool] = True
    per_row: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Mitigating Neural Network Overconfidence with Logit Normalization", "Wei et al.", "ICML 2022"
    )

    temperature: float = Field(default=0.04, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        _, head = last_linear(model)
        if not bool(head.weight.any()) and (head.bias is None or not bool(head.bias.any())):
            raise ModelError("logitnorm divides by the length of the logits, and this head starts with zeros only")
        return model

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        logits = logits_of(model(batch.images)).float()
        return Step(label_loss(self.scaled(logits), batch), logits)

    def scaled(self, logits: Tensor) -> Tensor:
        r"""Logits of norm :math:`1/\tau`."""
        length: Tensor = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
        return logits / ((length + _TINY) * self.temperature)
