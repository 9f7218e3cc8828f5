"""The two terms that turn a plain generator into one of near-OOD images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Perceptual = Callable[[Tensor, Tensor], Tensor]
"""Two batches of images in [0, 1] to their distances ``[N]``, differentiable."""

Semantic = Callable[[Tensor], Tensor]
"""Images in [0, 1] to their mutual information ``[N]`` in nats, differentiable."""


@dataclass(frozen=True)
class NearObjective:
    r""":math:`λ_p\, d(x, G) - λ_s \min(I(G), c)`: like a real image to the eye, like none to an ensemble."""

    perceptual: Perceptual
    semantic: Semantic
    lambda_perceptual: float
    lambda_semantic: float
    ceiling: float | None = None

    def __call__(self, drawn: Tensor, candidates: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """The cost, the mean distance and the mean information, all scalars.

        Parameters
        ----------
        drawn : images in [0, 1], with gradients.
        candidates : batches of real images in [0, 1]; row i of the nearest one is the partner of image i.
        """
        distance = self.perceptual(nearest(drawn, candidates, self.perceptual), drawn).mean()
        information = self.semantic(drawn)
        rewarded = information if self.ceiling is None else information.clamp(max=self.ceiling)
        cost = self.lambda_perceptual * distance - self.lambda_semantic * rewarded.mean()
        return cost, distance, information.mean()


@torch.no_grad()
def nearest(drawn: Tensor, candidates: Sequence[Tensor], perceptual: Perceptual) -> Tensor:
    """For each image the candidate at the smallest distance; the choice itself has no gradient."""
    if len(candidates) == 1:
        return candidates[0]
    distances = torch.stack([perceptual(each, drawn) for each in candidates])
    return torch.stack(list(candidates))[distances.argmin(0), torch.arange(len(drawn), device=drawn.device)]
