"""AugMix: a mixture of the image with several chains of operations on it."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation
from oodscope.training.augment.operations import OPERATIONS, apply_operations, both_ways

BINS = 10
DEPTH = 3
"""The longest chain."""


class AugMix(Augmentation):
    r"""Three chains of one to three operations, mixed with each other and with the image.

    .. math:: \tilde x = m\,x + (1-m) \sum_{i=1}^3 w_i\, o_i(x), \qquad m \sim \mathrm{Beta}(1,1),\;
              w \sim \mathrm{Dirichlet}(1,1,1)

    Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", ICLR 2020. The
    thirteen operations are torchvision's (``all_ops``), each at one of the weakest ``severity`` of ten steps. Severity
    1 is the first step alone, at which most of them do nothing; the authors take 3.

    Parameters
    ----------
    severity : how many steps of magnitude are drawn from.
    width : how many chains.
    """

    kind: ClassVar[str] = "augmix"

    severity: int = Field(default=3, gt=0, le=BINS)
    width: int = Field(default=3, gt=0)

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        count, chains = len(pixels), self.width * len(pixels)
        # all random numbers of a batch at once: how long each chain is, three for each place of it, the weights
        per_chain = 1 + 3 * DEPTH + 1
        drawn = torch.rand(per_chain * self.width + 1, count, generator=generator, device=generator.device)
        length, *places, waiting = drawn[:-1].to(pixels.device).view(per_chain, chains)
        original = drawn[-1].to(pixels.device)
        kind, step, sign = torch.stack(places).view(DEPTH, 3, chains).unbind(dim=1)
        operation = 1 + (kind * (len(OPERATIONS) - 1)).long()
        strength = self._strengths(pixels, operation, (step * self.severity).long(), sign < 0.5)
        chained, depth = pixels.repeat(self.width, 1, 1, 1), (length * DEPTH).long().view(-1, 1, 1, 1)
        for place in range(DEPTH):
            varied = apply_operations(chained, operation[place], strength[place])
            # the shortest chain has one operation
            chained = torch.where(depth >= place, varied, chained) if place else varied
        # spacings of a Poisson process are Dirichlet(1, ..., 1)
        waits = torch.log1p(-waiting.view(self.width, count, 1, 1, 1)).neg_()
        weights = waits / waits.sum(dim=0).clamp_(min=torch.finfo(torch.float32).tiny)
        share = original.view(-1, 1, 1, 1)
        mixed = (chained.view(self.width, *pixels.shape) * weights).sum(dim=0).mul_(1 - share).add_(share * pixels)
        return mixed.clamp_(0, 255).to(torch.uint8)

    def _strengths(self, pixels: Tensor, operation: Tensor, step: Tensor, positive: Tensor) -> Tensor:
        height, width = pixels.shape[2:]
        shares = [place / (BINS - 1) for place in range(BINS)]
        amounts = [
            {
                "shear_x": 0.3 * share,
                "shear_y": 0.3 * share,
                "translate_x": width / 3 * share,
                "translate_y": height / 3 * share,
                "rotate": 30 * share,
                "brightness": 0.9 * share,
                "color": 0.9 * share,
                "contrast": 0.9 * share,
                "sharpness": 0.9 * share,
                "posterize": 4.0 - round(4 * share),
                "solarize": 255 * (1 - share),
            }
            for share in shares
        ]
        return both_ways(amounts, pixels.device)[positive.long(), step, operation]
