"""PALM: several prototypes of each class, to which embeddings are assigned softly."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.training.methods.prototypes import PrototypeRecipe, Prototypes, prototypes_of
from oodscope.training.recipe import Batch, Step, TrainingFacts


class PALM(PrototypeRecipe):
    r"""Each class is a mixture on the sphere: embeddings near its prototypes, prototypes near those of their class.

    .. math:: L = \frac1B\sum_i\Bigl[-\sum_j q_{ij}\frac{\langle f_i,\pi_j\rangle}{\tau}
              + \log\sum_j e^{\langle f_i,\pi_j\rangle/\tau}\Bigr] + w\,L_{\mathrm{contrast}}(\pi)

    The assignments :math:`q` come from three rounds of Sinkhorn's algorithm over all prototypes, in logarithms, cut to
    the ``top`` prototypes of an image's own class. Prototypes follow the embeddings assigned to them with momentum
    ``momentum_of_prototypes`` and are a buffer of the network; the gradient of the second term, a supervised contrast
    between prototypes, flows through that. The score is the Mahalanobis distance of unit features
    (``mahalanobis_pp``). OpenOOD trains CIFAR-10 with batches of 16, learning rate .1 and momentum .9.

    Parameters
    ----------
    prototypes : of each class.
    top : prototypes that an embedding is assigned to.
    momentum_of_prototypes : of their moving average.
    sharpness : temperature of the assignments.
    rounds : of Sinkhorn's algorithm.
    contrast : :math:`w`.
    contrast_temperature : of the contrast between prototypes.
    """

    name: ClassVar[str] = "palm"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Learning with Mixture of Prototypes for Out-of-Distribution Detection", "Lu et al.", "ICLR 2024"
    )
    detectors: ClassVar[tuple[str, ...]] = ("mahalanobis_pp", "msp")

    prototypes: int = Field(default=6, gt=0)
    top: int = Field(default=5, gt=0)
    momentum_of_prototypes: float = Field(default=0.999, ge=0, le=1)
    sharpness: float = Field(default=0.05, gt=0)
    rounds: int = Field(default=3, gt=0)
    contrast: float = Field(default=1.0, ge=0)
    contrast_temperature: float = Field(default=0.5, gt=0)

    def layer(self, width: int, facts: TrainingFacts) -> Prototypes:
        return Prototypes(width, facts.num_classes, self.size, self.temperature, self.prototypes)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output, layer = model(batch.images), prototypes_of(model)
        embedding = output[EMBEDDING]
        with torch.autocast(embedding.device.type, enabled=False):
            labels = batch.labels.repeat(len(embedding) // len(batch.labels))
            classes = torch.arange(len(layer.prototypes), device=labels.device) % layer.num_classes
            own = labels[:, None] == classes
            assigned = self.assigned(embedding, layer.prototypes, own)
            moved = self.followed(layer.prototypes, embedding, assigned)
            likely = self.likelihood(embedding, moved.detach(), assigned > 0)
            loss = likely + self.contrast * contrast(moved, classes, self.contrast_temperature)
        with torch.no_grad():
            layer.prototypes.copy_(moved)
        return Step(loss, output["logits"][: len(batch.labels)])

    def followed(self, prototypes: Tensor, embedding: Tensor, assigned: Tensor) -> Tensor:
        """The prototypes after they followed the embeddings assigned to them."""
        share = normalize(assigned, p=1, dim=0)
        kept = self.momentum_of_prototypes
        return normalize(kept * prototypes + (1 - kept) * share.T @ embedding)

    def likelihood(self, embedding: Tensor, prototypes: Tensor, among: Tensor) -> Tensor:
        """Minus the mean log-likelihood of embeddings, each assigned anew among the prototypes it had before."""
        similar = embedding @ prototypes.T / self.temperature
        assigned = self.assigned(embedding, prototypes, among)
        return (similar.logsumexp(dim=1) - (assigned * similar).sum(dim=1)).mean()

    @torch.no_grad()
    def assigned(self, embedding: Tensor, prototypes: Tensor, among: Tensor) -> Tensor:
        """How much of each embedding belongs to each of ``among`` its prototypes; rows sum to 1."""
        logs = sinkhorn(embedding @ prototypes.T / self.sharpness, self.rounds).masked_fill(~among, -torch.inf)
        top = logs.topk(min(self.top, self.prototypes), dim=1)
        return torch.zeros_like(logs).scatter(1, top.indices, top.values.softmax(dim=1))


def sinkhorn(scores: Tensor, rounds: int) -> Tensor:
    """Logarithms of assignments ``[B, P]`` of rows to columns that are used about equally; rows sum to 1.

    They stay logarithms, because an embedding that lies at another class has shares of its own class that are no
    numbers any more beside the others.
    """
    logs = scores
    for _ in range(rounds):
        logs = logs - logs.logsumexp(dim=0, keepdim=True)
        logs = logs - logs.logsumexp(dim=1, keepdim=True)
    return logs


def contrast(points: Tensor, classes: Tensor, temperature: float) -> Tensor:
    """The supervised contrastive loss of unit ``points``; one without another of its class does not count."""
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    similar = (points @ points.T / temperature).masked_fill(itself, -torch.inf)
    logs = (similar - similar.logsumexp(dim=1, keepdim=True)).masked_fill(itself, 0.0)
    same = (classes[:, None] == classes) & ~itself
    count = same.sum(dim=1)
    each = -(logs * same).sum(dim=1) / count.clamp(min=1)
    return each.sum() / (count > 0).sum().clamp(min=1)
