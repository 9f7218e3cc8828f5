"""Energy fine-tuning: a low energy for known images, a high one for outliers."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.recipe import Batch, Step


class EnergyOE(CrossEntropy):
    r"""Cross-entropy, and squared hinges that push the energies of known images and outliers apart.

    .. math:: L = -\log p_y(x) + \lambda\bigl[\max(0, E(x) - m_{\mathrm{in}})^2
              + \max(0, m_{\mathrm{out}} - E(x_{\mathrm{out}}))^2\bigr], \qquad E(x) = -\log\sum_c e^{z_c(x)}

    Known images and outliers go through the network as one batch. The defaults are the authors' for fine-tuning a
    trained network of ten classes; with a hundred they take -27 for known images. The score is ``ebo``.

    Parameters
    ----------
    weight : :math:`\lambda`.
    known_energy : :math:`m_{\mathrm{in}}`, which known images should stay below.
    outlier_energy : :math:`m_{\mathrm{out}}`, which outliers should stay above.
    """

    name: ClassVar[str] = "energy_oe"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper("Energy-based Out-of-distribution Detection", "Liu et al.", "NeurIPS 2020")
    cost: ClassVar[float | None] = 3.0
    detectors: ClassVar[tuple[str, ...]] = ("ebo", "msp")

    epochs: int = Field(default=10, gt=0)
    learning_rate: float = Field(default=0.001, gt=0)
    ood_batch_size: int = Field(default=256, gt=0)
    weight: float = Field(default=0.1, ge=0)
    known_energy: float = -23.0
    outlier_energy: float = -5.0

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        logits = logits_of(model(torch.cat([batch.images, batch.ood.images])))
        energy = -logits.float().logsumexp(dim=1)
        known, unknown = energy[: len(batch.images)], energy[len(batch.images) :]
        apart = hinges(known, unknown, self.known_energy, self.outlier_energy)
        own = logits[: len(batch.images)]
        return Step(label_loss(own, batch) + self.weight * apart, own)


def hinges(known: Tensor, unknown: Tensor, below: float, above: float) -> Tensor:
    """The mean squares of what known energies lie above ``below``, and those of outliers under ``above``."""
    return (known - below).relu().square().mean() + (above - unknown).relu().square().mean()
