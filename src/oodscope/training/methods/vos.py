"""VOS: virtual outliers from the tails of class Gaussians in feature space, separated by their energy."""

import math
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.errors import ModelError
from oodscope.base.paper import Paper
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.queues import ClassQueues
from oodscope.training.recipe import Batch, Step, TrainingFacts

RIDGE = 1e-4
"""Added to the diagonal of the covariance."""

_LEAST, _NEWTON = 1e-8, 8


class EnergyHead(nn.Module):
    r"""The linear head, and what compares the energies of real and virtual features.

    .. math:: E(z) = \log \sum_c \max(0, w_c)\, e^{z_c}

    with one learnt :math:`w`; two logits of :math:`E` then say whether a feature is real.
    """

    def __init__(self, main: nn.Linear, queues: ClassQueues) -> None:
        super().__init__()
        self.main = main
        self.weight_of_class = nn.Parameter(torch.rand(main.out_features))
        self.is_real = nn.Linear(1, 2)
        self.queues = queues

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"main": self.main, "queues": self.queues}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        return {"logits": self.main(features), "features": features}

    def real_or_virtual(self, known: Tensor, virtual: Tensor) -> Tensor:
        """The cross-entropy of real against virtual, given the logits ``[B, C]`` of both."""
        energy = weighted_energy(torch.cat([known, virtual]), self.weight_of_class)
        real = (torch.arange(len(energy), device=energy.device) < len(known)).long()
        return cross_entropy(self.is_real(energy[:, None]), real)


def weighted_energy(logits: Tensor, weight: Tensor) -> Tensor:
    """The logarithm of the weighted sum of exponentials; weights below zero count as zero."""
    highest = logits.detach().amax(dim=1, keepdim=True)
    total = ((logits - highest).exp() * weight.relu()).sum(dim=1)
    return highest.flatten() + total.clamp(min=torch.finfo(logits.dtype).tiny).log()


def chi_square_beyond(width: int, chance: Tensor) -> Tensor:
    r"""What a :math:`\chi^2` of ``width`` degrees of freedom exceeds with this chance, in float64 on its device.

    Newton's steps in the logarithm of the tail, from the cube of Wilson and Hilferty.
    """
    half, spread = torch.full_like(chance, width / 2), 2 / (9 * width)
    # far below, where the cube would turn negative, Newton's steps rise to the root from any positive start
    point: Tensor = width / 2 * (1 - spread - torch.special.ndtri(chance) * math.sqrt(spread)).clamp(min=_LEAST) ** 3
    for _ in range(_NEWTON):
        tail = torch.special.gammaincc(half, point)
        density = (-point + (half - 1) * point.log() - torch.lgamma(half)).exp()
        point = (point + (tail.log() - chance.log()) * tail / density).clamp(min=_LEAST)
    return 2 * point


def virtual_outliers(queues: Tensor, candidates: int, draws: torch.Generator) -> Tensor:
    r"""For each class the least likely of many draws from its Gaussian, ``[C, D]``, by one draw.

    .. math:: v = \mu_c + L\,r\,u, \qquad LL^\top = \Sigma, \qquad r^2 = F_{\chi^2_D}^{-1}\bigl(U^{1/n}\bigr)

    The likelihood depends on the radius alone, which is independent of the direction :math:`u`: the least likely of
    :math:`n` draws has the largest of :math:`n` radii, whose law is that of :math:`r`.

    Parameters
    ----------
    queues : features of each class, ``[C, Q, D]``; one covariance is shared by all.
    candidates : :math:`n`.
    """
    features = (queues.cpu() if queues.device.type == "mps" else queues).double()  # Apple's GPUs have no float64
    classes, _, width = features.shape
    means = features.mean(dim=1)
    centred = (features - means[:, None]).flatten(0, 1)
    covariance = centred.T @ centred / len(centred)
    covariance.diagonal().add_(RIDGE)
    factor = torch.linalg.cholesky_ex(covariance).L  # asks the host for nothing; the ridge makes it definite
    chance = torch.rand(classes, generator=draws, device=draws.device).to(features.device).double()
    beyond = -torch.expm1(chance.clamp(min=_LEAST).log() / candidates)  # 1 - U^(1/n) without cancellation
    radius = chi_square_beyond(width, beyond).sqrt()
    direction = torch.randn(classes, width, generator=draws, device=draws.device).to(features.device).double()
    direction = direction / torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    made: Tensor = means + radius[:, None] * direction @ factor.T
    return made.to(queues)


class VOS(CrossEntropy):
    r"""Cross-entropy, and the energy of real features apart from that of virtual outliers.

    .. math:: L = \mathrm{CE}(z, y) + \lambda\,\mathrm{CE}\bigl(\phi(E(z)), \text{real or virtual}\bigr)

    Each class keeps a queue of its latest features, as a buffer of the network. Once all are full, each step draws one
    virtual outlier of each class: the least likely of ``candidates`` points of a Gaussian with the class's mean and the
    covariance of all. Gradients flow through the energies of both, and the weights of the energy are learnt; in
    OpenOOD's released code neither happens. The score is the energy (``ebo``).

    Parameters
    ----------
    weight : :math:`\lambda`.
    queue : features kept of each class.
    candidates : points of which the least likely is taken.
    outlier_epoch : the first epoch, counted from 0, with virtual outliers: 40 by the authors, 0 in OpenOOD.
    """

    name: ClassVar[str] = "vos"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "VOS: Learning What You Don't Know by Virtual Outlier Synthesis", "Du et al.", "ICLR 2022"
    )
    detectors: ClassVar[tuple[str, ...]] = ("ebo", "msp")

    weight: float = Field(default=0.1, ge=0)
    queue: int = Field(default=1000, gt=1)
    candidates: int = Field(default=10_000, gt=0)
    outlier_epoch: int = Field(default=40, ge=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        def beside(last: nn.Linear) -> nn.Module:
            return EnergyHead(last, ClassQueues.of("vos", facts.num_classes, self.queue, last.in_features))

        return replace_layer(model, beside)

    def phase(self, epoch: int) -> int:
        """Whether there are virtual outliers."""
        return int(epoch >= self.outlier_epoch)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        output = model(batch.images)
        logits, head = output["logits"], energy_head(model)
        loss = label_loss(logits, batch)
        head.queues.push(output["features"].detach(), batch.labels)
        if not self.phase(batch.epoch):
            return Step(loss, logits)
        with torch.autocast(logits.device.type, enabled=False):
            virtual = head.main(virtual_outliers(head.queues.features, self.candidates, batch.draws))
            apart = head.real_or_virtual(logits.float(), virtual)
        return Step(loss + self.weight * torch.where(head.queues.full, apart, 0.0), logits)


def energy_head(model: nn.Module) -> EnergyHead:
    """The head that ``VOS`` prepared."""
    head = next((part for part in model.modules() if isinstance(part, EnergyHead)), None)
    if head is None:
        raise ModelError("this network was not prepared by the recipe 'vos'")
    return head
