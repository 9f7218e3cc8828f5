"""RAS: every feature takes the value that is usual for its rank."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Needs
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.rectifier import Rectifier, top_values

ORDERS = ("value", "magnitude")


class RAS(Rectifier):
    r"""Ranked Activation Shift: only the order of an image's features counts, their values are the training mean's.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\tilde h + b, \qquad \tilde h_{\pi(i)} = q_i, \quad
              q_i = \frac1n\sum_j h_{j,(i)}

    where :math:`\pi(i)` is the position of the i-th smallest feature of the image and :math:`q_i` the mean i-th
    smallest feature of the training images. Any strictly increasing map of the features leaves the score as it is.
    Among equal features the one with the lower index counts as the smaller.

    Parameters
    ----------
    by : ``value`` orders signed features, as the released code does; ``magnitude`` orders their absolute values, of
        which the abstract speaks, and puts the signs back.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "ras"
    paper = Paper(
        "Ranked Activation Shift for Post-Hoc Out-of-Distribution Detection", "Guglielmo & Masana", "ECCV 2026"
    )
    needs = Rectifier.needs | Needs.TRAIN
    grid = {"by": ORDERS}

    def __init__(self, by: str = "value", logit_score: LogitScore | None = None) -> None:
        self.by = by
        self.logit_score = logit_score

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.by not in ORDERS:
            raise DetectorError(f"ras: by must be one of {', '.join(ORDERS)}, not {self.by!r}")
        width = train.shape("features")[1]
        total = precise(torch.zeros(width, device=self.device))
        for chunk in train.chunks(device=self.device, only=("features",)):
            total += precise(top_values(self._keys(chunk.features), width)).sum(dim=0)
        self.profile_ = (total / len(train)).flip(0)

    def _keys(self, features: Tensor) -> Tensor:
        return features.abs() if self.by == "magnitude" else features

    def _rectify(self, features: Tensor) -> Tensor:
        order = self._keys(features).argsort(dim=1, stable=True)
        usual = self.profile_.to(features.dtype).expand_as(features)
        shifted = torch.zeros_like(features).scatter(1, order, usual)
        return shifted * features.sign() if self.by == "magnitude" else shifted
