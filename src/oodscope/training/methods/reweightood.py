"""ReweightOOD: pairs of embeddings, where pairs that are not yet as they should be count more."""

from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import elu, normalize

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.training.methods.prototypes import PrototypeRecipe, class_means, prototypes_of
from oodscope.training.recipe import Batch, Step

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_FOLLOWS = 0.95


class ReweightOOD(PrototypeRecipe):
    r"""Embeddings of one class alike, those of two classes not; each pair weighted by how wrong it is.

    .. math:: L = \mathrm{ELU}\Bigl(\log\sum_{+} e^{-w^+ s^+/\tau} + \log\sum_{-} e^{w^- s^-/\tau}\Bigr), \qquad
              w^+ = \sigma(1 - 2s^+), \quad w^- = \sigma(5s^- - 4)

    over all pairs of a batch's embeddings, with their cosine :math:`s` and weights without gradient. The loss has no
    prototypes; class means of the embeddings follow the training, only so that there are logits and an accuracy, and at
    the end are those of all training images. The score is the Mahalanobis distance of unit features
    (``mahalanobis_pp``).
    """

    name: ClassVar[str] = "reweightood"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "ReweightOOD: Loss Reweighting for Distance-based OOD Detection", "Regmi et al.", "CVPR Workshops 2024"
    )
    detectors: ClassVar[tuple[str, ...]] = ("mahalanobis_pp", "msp")

    learning_rate: float = Field(default=0.1, gt=0)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output, layer = model(batch.images), prototypes_of(model)
        embedding = output[EMBEDDING]
        labels = batch.labels.repeat(len(embedding) // len(batch.labels))
        with torch.autocast(embedding.device.type, enabled=False):
            loss = reweighted(embedding, labels, self.temperature)
        with torch.no_grad():
            sums = torch.zeros_like(layer.prototypes).index_add(0, labels, embedding.to(layer.prototypes.dtype))
            shown = (sums != 0).any(dim=1, keepdim=True)
            moved = normalize(_FOLLOWS * layer.prototypes + (1 - _FOLLOWS) * normalize(sums))
            layer.prototypes.copy_(torch.where(shown, moved, layer.prototypes))
        return Step(loss, output["logits"][: len(batch.labels)])

    def finish(self, model: nn.Module, streams: "Streams") -> None:
        prototypes_of(model).prototypes.copy_(class_means(model, streams))


def reweighted(embedding: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The loss over all pairs of unit embeddings; each pair counts once."""
    similar = embedding @ embedding.T
    once = torch.ones_like(similar, dtype=torch.bool).triu(diagonal=1)
    same = labels[:, None] == labels
    near, far = (1 - 2 * similar).sigmoid().detach(), (5 * similar - 4).sigmoid().detach()
    pulled = (-near * similar / temperature).masked_fill(~(once & same), -torch.inf)
    pushed = (far * similar / temperature).masked_fill(~(once & ~same), -torch.inf)
    return elu(_total(pulled) + _total(pushed))


def _total(values: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials; of no pair at all, 0 without a gradient."""
    flat = values.flatten()
    some = torch.isfinite(flat).any()
    return torch.where(some, torch.where(some, flat, torch.zeros_like(flat)).logsumexp(dim=0), 0.0)
