r"""Semantic distance: how much the members of an ensemble contradict each other about an image."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.detectors.math.numbers import precise
from oodscope.generation.distances.device_preprocess import DevicePreprocess
from oodscope.models.classifier.classifier import Classifier

_LEAST = -1e4
"""The least logarithm of a probability: its exponential is 0, and unlike minus infinity it has a gradient."""


def information(logits: Tensor) -> Tensor:
    r"""Mutual information of members' predictions and the choice of the member, in nats, from ``[T, N, C]`` logits.

    .. math:: I = H\Bigl(\frac1T\sum_t p_t\Bigr) - \frac1T\sum_t H(p_t)
              = \frac1T\sum_t \mathrm{KL}\Bigl(p_t \,\Big\|\, \frac1T\sum_s p_s\Bigr)

    Computed in the second form, from logarithms: it has no difference of large terms, is exact where members are
    certain (two that contradict each other: :math:`\ln 2`), and its gradient is finite there.
    """
    log_p = precise(logits).log_softmax(dim=2).clamp(min=_LEAST)
    log_mean = log_p.logsumexp(dim=0) - math.log(len(log_p))
    return (log_p.exp() * (log_p - log_mean)).sum(dim=2).mean(dim=0)


class EnsembleInformation:
    """Mutual information of several different networks: near 0 on what they all know, large where they disagree.

    At least 0, at most the logarithm of the number of members or of classes, whichever is less.

    Parameters
    ----------
    classifiers : two or more, for the same classes in the same order. Members of different architectures disagree where
        the image is to blame; members of one architecture also share its blind spots.
    """

    def __init__(self, classifiers: Sequence[Classifier]) -> None:
        if len(classifiers) < 2:
            raise ModelError(f"an ensemble needs two networks or more, not {len(classifiers)}")
        classes = {each.name: each.num_classes for each in classifiers}
        if len({each.num_classes for each in classifiers}) > 1:
            raise ModelError(f"members of an ensemble need the same classes; these have {classes}")
        if len({each.device for each in classifiers}) > 1:
            raise ModelError("members of an ensemble must be on one device")
        self.members = tuple(classifiers)
        self._preprocesses = [DevicePreprocess(each) for each in classifiers]

    @property
    def device(self) -> torch.device:
        return self.members[0].device

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of each member, by name: what a recipe records."""
        return {each.name: each.fingerprint for each in self.members}

    def logits(self, images: Tensor) -> Tensor:
        """``[T, N, C]`` logits of float images ``[N, C, H, W]`` in [0, 1]."""
        return torch.stack([preprocess(images).logits for preprocess in self._preprocesses])

    def __call__(self, images: Tensor) -> Tensor:
        """``[N]`` mutual information in nats, with a gradient to the images."""
        return information(self.logits(images))

    @torch.no_grad()
    def of_pixels(self, pixels: Tensor, batch_size: int = 500) -> NDArray[np.float64]:
        """``[N]`` mutual information of uint8 images ``[N, C, H, W]``: what is stored is what is measured."""
        return self.information_and_class(pixels, batch_size)[0]

    @torch.no_grad()
    def information_and_class(self, pixels: Tensor, batch_size: int = 500) -> tuple[NDArray[np.float64], Tensor]:
        """``of_pixels``, and ``[N]`` the class that the members together see, on the CPU; from one pass."""
        doubts, classes = [], []
        for part in torch.split(pixels, batch_size):
            logits = self.logits(part.to(self.device).float() / 255)
            doubts.append(information(logits).cpu())
            classes.append(logits.softmax(2).mean(0).argmax(1).cpu())
        return torch.cat(doubts).double().numpy(), torch.cat(classes)
