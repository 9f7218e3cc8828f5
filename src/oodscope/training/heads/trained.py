"""TrainedHead: two layers on embeddings, and the activations that detectors read."""

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from oodscope.activations.activations import Activations
from oodscope.models.classifier.head import Head

PRE_ACTIVATION = "pre_activation"
"""The column of features before the ReLU."""


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """What ``train_heads`` made of one task; weights are on the CPU and read embeddings as they were given.

    Parameters
    ----------
    hidden_weight, hidden_bias : ``[H, D]`` and ``[H]``, from embeddings to features.
    head : from features to logits.
    epoch : after which its weights were kept, counted from 1; for a fine-tuned head, an epoch of the fine-tuning.
    val_accuracy : of these weights, in [0, 1]; ``None`` without validation rows.
    """

    hidden_weight: Tensor
    hidden_bias: Tensor
    head: Head
    epoch: int
    val_accuracy: float | None

    @torch.no_grad()
    def pre_activation(self, embeddings: Tensor) -> Tensor:
        """``[N, H]`` from ``[N, D]``, before the ReLU, float32 on the device of the embeddings."""
        device = embeddings.device
        return linear(embeddings.float(), self.hidden_weight.to(device), self.hidden_bias.to(device))

    def features(self, embeddings: Tensor) -> Tensor:
        """``[N, H]`` from ``[N, D]``, at least zero: what the head reads."""
        return self.pre_activation(embeddings).relu_()

    def activations(self, embeddings: Tensor, labels: ArrayLike | Tensor | None = None) -> Activations:
        """Logits, features, labels and head, as from a network whose last layer this is.

        The column ``pre_activation`` holds the features before the ReLU. The head does not read them:
        ``pre_activation · Wᵀ + b`` are not the logits.
        """
        before = self.pre_activation(embeddings)
        features, head = before.relu(), self.head.to(embeddings.device)
        return Activations(
            logits=head.logits(features),
            features=features,
            labels=labels,
            head=head,
            columns={PRE_ACTIVATION: before},
        )
