"""The terms that make an image look different and mean the same."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from oodscope.generation.near.objective import Perceptual, Semantic

Logits = Callable[[Tensor], Tensor]
"""Images in [0, 1] to the logits ``[T, N, C]`` of an ensemble's members, differentiable."""


@dataclass(frozen=True)
class ShiftedObjective:
    r""":math:`-λ_p\, d(x, G(x)) + λ_s\, I(G(x)) + λ_y\, \mathrm{CE}`; without ``logits``, no label term."""

    perceptual: Perceptual
    semantic: Semantic
    logits: Logits | None
    lambda_perceptual: float
    lambda_semantic: float
    lambda_label: float

    def __call__(self, given: Tensor, drawn: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """The cost, then the mean of each term: distance, information and, where there is one, cross-entropy.

        Parameters
        ----------
        given, drawn : images in [0, 1].
        labels : of the given images.
        """
        distance, information = self.perceptual(given, drawn).mean(), self.semantic(drawn).mean()
        cost = self.lambda_semantic * information - self.lambda_perceptual * distance
        if self.logits is None:
            return cost, distance, information
        entropy = mean_cross_entropy(self.logits(drawn), labels)
        return cost + self.lambda_label * entropy, distance, information, entropy


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of all members ``[T, N, C]`` and images."""
    right = logits.float().log_softmax(2).gather(2, labels.view(1, -1, 1).expand(len(logits), -1, 1))
    return -right.mean()
