"""Variety: whether a generator still draws different images."""

import logging

import torch
from torch import Tensor

from oodscope.base.config import StrictModel

_LOG = logging.getLogger(__name__)
COLLAPSED = 0.5
"""Below this share of the real distance, most of the variety is gone."""


class Variety(StrictModel):
    """Mean distance between two drawn images, and between two real ones: root mean square over pixels in [0, 1]."""

    drawn: float
    real: float

    @property
    def share(self) -> float:
        """The one as a share of the other: near 1 for a generator with the variety of its training images."""
        return self.drawn / self.real if self.real > 0 else 1.0

    def warn(self) -> None:
        """Say so if the generator collapsed."""
        if self.share < COLLAPSED:
            _LOG.warning(
                "the generator has collapsed: two of its images differ by %.3f, two real ones by %.3f. Raise r1 "
                "tenfold, lower learning_rate, or train on more images",
                *(self.drawn, self.real),
            )


def measure_variety(drawn: Tensor, real: Tensor) -> Variety:
    """From some hundred images of each kind, ``[N, C, H, W]`` in [0, 1]."""
    return Variety(drawn=mean_distance(drawn), real=mean_distance(real))


def mean_distance(images: Tensor) -> float:
    """Between two of these images: root mean square over pixels."""
    flat = images.flatten(1).float()
    return float(torch.pdist(flat).mean() / flat.shape[1] ** 0.5)
