"""RotPred: the network also says by how many quarter turns an image was turned."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import ROTATION, TURNS, with_branches
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step, TrainingFacts


class RotPred(CrossEntropy):
    r"""Cross-entropy of the class, and of the turn of each image in all four quarter turns.

    .. math:: L = \mathrm{CE}(z(x), y) + \frac{\lambda}{4} \sum_{k=0}^3 \mathrm{CE}(r(T_k x), k)

    The four turns go through the network as one batch. The authors' code weights the second term by 1/3 and adds
    translations; OpenOOD's, whose published row this is, by 1.

    Parameters
    ----------
    weight : :math:`\lambda`.
    """

    name: ClassVar[str] = "rotpred"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Using Self-Supervised Learning Can Improve Model Robustness and Uncertainty",
        "Hendrycks et al.",
        "NeurIPS 2019",
    )
    cost: ClassVar[float | None] = 4.0
    detectors: ClassVar[tuple[str, ...]] = ("rotpred",)

    weight: float = Field(default=1.0, ge=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return with_branches(model, {ROTATION: TURNS})

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        count = len(batch.labels)
        turned = torch.cat([batch.images.rot90(turn, (2, 3)) for turn in range(TURNS)])
        output = model(turned.contiguous(memory_format=torch.channels_last))
        logits = output["logits"][:count]
        return Step(label_loss(logits, batch) + self.weight * turn_loss(output[ROTATION]).mean(), logits)


def turn_loss(rotation: Tensor) -> Tensor:
    """The cross-entropy of each turn's logits, ``[4 B, 4]`` in four blocks, in float32."""
    turns = torch.arange(TURNS, device=rotation.device).view(-1, 1).expand(-1, len(rotation) // TURNS)
    return cross_entropy(rotation.float(), turns.reshape(-1), reduction="none")
