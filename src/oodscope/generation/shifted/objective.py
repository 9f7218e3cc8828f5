"""The terms that make an image look different and mean the same."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from oodscope.generation.near.objective import Perceptual
from oodscope.generation.semantic import information


class Members(Protocol):
    """Networks that are asked together, such as ``EnsembleInformation``."""

    def logits(self, images: Tensor) -> Tensor:
        """``[T, N, C]`` logits of images in [0, 1], differentiable."""
        ...


@dataclass(frozen=True)
class ShiftedObjective:
    r""":math:`-λ_p\, d(x, G(x)) + λ_s\, I(G(x)) + λ_y\, \mathrm{CE}`, from one pass of the members."""

    perceptual: Perceptual
    members: Members
    lambda_perceptual: float
    lambda_semantic: float
    lambda_label: float

    def __call__(self, given: Tensor, drawn: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The cost, then the mean of each term: distance, information and cross-entropy.

        Parameters
        ----------
        given, drawn : images in [0, 1].
        labels : of the given images.
        """
        logits = self.members.logits(drawn)
        distance, doubt = self.perceptual(given, drawn).mean(), information(logits).mean()
        entropy = mean_cross_entropy(logits, labels)
        cost = self.lambda_semantic * doubt - self.lambda_perceptual * distance + self.lambda_label * entropy
        return cost, distance, doubt, entropy


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of all members ``[T, N, C]`` and images."""
    right = logits.float().log_softmax(2).gather(2, labels.view(1, -1, 1).expand(len(logits), -1, 1))
    return -right.mean()
