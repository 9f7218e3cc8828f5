"""CIDER: embeddings close to the prototype of their class, and prototypes far from each other."""

from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.training.methods.prototypes import PrototypeRecipe, class_means, prototypes_of
from oodscope.training.recipe import Batch, Step

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_COMPACT = 0.07
"""The authors' code weights the cross-entropy by the temperature over this."""


class CIDER(PrototypeRecipe):
    r"""Compactness of classes around prototypes on the sphere, and dispersion of the prototypes.

    .. math:: L = w\,\frac{\tau}{.07}\,\mathrm{CE}\Bigl(\frac{f\mu^\top}{\tau}, y\Bigr)
              + \frac1C\sum_i \log\frac{1}{C-1}\sum_{j\ne i} e^{\langle\mu_i,\mu_j\rangle/\tau}

    Prototypes follow their embeddings one by one, :math:`\mu_y \leftarrow (m\mu_y + (1-m)f)/\lVert\cdot\rVert`. The
    gradient of the second term flows through that; in the first they are constants. They start as the class means of
    the training images (in OpenOOD's code: of labelled validation images) and are a buffer of the network. The score is
    the distance to the nearest training features, before the projection (``knn``).

    On ImageNet a trained network is fine-tuned: ``train_only: [layer4]``, 10 epochs, ``warmup_epochs: 0``, learning
    rate .01 (200 classes) or .001, views by ``{kind: resized_crop, area: [.4, 1]}`` and ``jitter``. The frozen layers
    keep their statistics.

    Parameters
    ----------
    momentum_of_prototypes : :math:`m`; .5 for CIFAR-100.
    compactness : :math:`w`.
    dispersion : what the second term counts.
    """

    name: ClassVar[str] = "cider"
    paper: ClassVar[Paper | None] = Paper(
        "How to Exploit Hyperspherical Embeddings for Out-of-Distribution Detection?", "Ming et al.", "ICLR 2023"
    )
    detectors: ClassVar[tuple[str, ...]] = ("knn", "msp")

    momentum_of_prototypes: float = Field(default=0.95, ge=0, le=1)
    compactness: float = Field(default=2.0, ge=0)
    dispersion: float = Field(default=1.0, ge=0)

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        if epoch == 0:
            prototypes_of(model).prototypes.copy_(class_means(model, streams))

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        # how many rounds the prototypes take is read off the labels, so the step is not recorded
        return self.embedded_loss(model, model(batch.images)[EMBEDDING], batch)

    def embedded_loss(self, model: nn.Module, embedding: Tensor, batch: Batch) -> Step:
        """The loss of the embeddings of all views; moves the prototypes."""
        layer = prototypes_of(model)
        with torch.autocast(embedding.device.type, enabled=False):
            labels = batch.labels.repeat(len(embedding) // len(batch.labels))
            moved = follow(layer.prototypes, embedding, labels, self.momentum_of_prototypes)
            logits = embedding @ moved.detach().T / self.temperature
            compact = self.temperature / _COMPACT * cross_entropy(logits, labels)
            loss = self.compactness * compact + self.dispersion * dispersion(moved, self.temperature)
        with torch.no_grad():
            layer.prototypes.copy_(moved)
        return Step(loss, logits[: len(batch.labels)])


def follow(prototypes: Tensor, embedding: Tensor, labels: Tensor, momentum: float) -> Tensor:
    """The prototypes after each of the embeddings has drawn that of its class towards itself, in the order of rows.

    Classes do not touch each other's prototypes, so each round takes the next row of every class at once.
    """
    members = nn.functional.one_hot(labels, len(prototypes))
    turn = (members.cumsum(dim=0) - 1).gather(1, labels[:, None]).flatten()
    for number in range(int(members.sum(dim=0).max())):
        rows = (turn == number).nonzero().flatten()
        own = labels[rows]
        drawn = normalize(momentum * prototypes[own] + (1 - momentum) * embedding[rows])
        prototypes = prototypes.index_copy(0, own, drawn)
    return prototypes


def dispersion(prototypes: Tensor, temperature: float) -> Tensor:
    """The mean logarithm of how similar a prototype is to the others; least where they are farthest apart."""
    count = len(prototypes)
    similar = prototypes @ prototypes.T / temperature
    others = similar.masked_fill(torch.eye(count, dtype=torch.bool, device=similar.device), -torch.inf)
    return (others.logsumexp(dim=1) - torch.tensor(count - 1.0, device=similar.device).log()).mean()
