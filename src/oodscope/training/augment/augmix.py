"""AugMix: a mixture of the image with several chains of operations on it."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation
from oodscope.training.augment.operations import OPERATIONS, apply_operations, strengths

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
        count, device = len(pixels), pixels.device

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=generator, device=generator.device).to(device)

        chained = pixels.repeat(self.width, 1, 1, 1)
        depth = (uniform(len(chained)) * DEPTH).long()
        for place in range(DEPTH):
            operation = 1 + (uniform(len(chained)) * (len(OPERATIONS) - 1)).long()
            step = (uniform(len(chained)) * self.severity).long()
            strength = self._strengths(pixels, operation, step, uniform(len(chained)) < 0.5)
            varied = apply_operations(chained, operation, strength)
            chained = torch.where((depth >= place).view(-1, 1, 1, 1), varied, chained)
        # spacings of a Poisson process are Dirichlet(1, ..., 1)
        waits = -torch.log1p(-uniform(self.width, count))
        weights = waits / waits.sum(dim=0).clamp(min=torch.finfo(torch.float32).tiny)
        original = uniform(count).view(-1, 1, 1, 1)
        parts = chained.view(self.width, *pixels.shape).float() * weights.view(self.width, count, 1, 1, 1)
        mixed = original * pixels.float() + (1 - original) * parts.sum(dim=0)
        return mixed.clamp(0, 255).to(torch.uint8)

    def _strengths(self, pixels: Tensor, operation: Tensor, step: Tensor, positive: Tensor) -> Tensor:
        share, (height, width) = step.float() / (BINS - 1), pixels.shape[2:]
        amounts = {
            "shear_x": 0.3 * share,
            "shear_y": 0.3 * share,
            "translate_x": width / 3 * share,
            "translate_y": height / 3 * share,
            "rotate": 30 * share,
            "brightness": 0.9 * share,
            "color": 0.9 * share,
            "contrast": 0.9 * share,
            "sharpness": 0.9 * share,
            "posterize": 4 - (4 * share).round(),
            "solarize": 255 * (1 - share),
        }
        return strengths(operation, positive, amounts)
