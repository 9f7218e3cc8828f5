"""SIRC: softmax doubt, raised where the features are weak."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP

STEEPEST = 600.0
"""Largest exponent: beyond it float64 would overflow."""


class SIRC(Detector):
    r"""The softmax doubt, multiplied by a factor that grows as the features fall below their usual size.

    .. math:: s(x) = \bigl(1-\max_c p_c\bigr)\,\Bigl(1 + e^{-b\,(\lVert h\rVert_1 - a)}\Bigr), \qquad
              a = \mu - 3\sigma, \quad b = 1/\sigma

    with :math:`\mu, \sigma` mean and standard deviation of :math:`\lVert h\rVert_1` on held-out in-distribution images.
    Among images with usual features the order of the softmax stays as it is, so correct and wrong predictions keep
    apart; that makes it the natural baseline for rejection. The exponent ends at 600; where all lengths are equal
    (:math:`\sigma = 0`) they say nothing, and the factor is constant.
    """

    name = "sirc"
    paper = Paper(
        "Augmenting Softmax Information for Selective Classification with Out-of-Distribution Data",
        "Xia & Bouganis",
        "ACCV 2022",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HELD_OUT
    cost = Cost.HEAD

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        sizes = val.per_row(_size, device=self.device, only=("features",))
        spread = float(sizes.std(correction=0))
        self.start_ = float(sizes.mean()) - 3 * spread
        self.slope_ = 1 / spread if spread > 0 else 0.0

    def _score(self, batch: Activations) -> Tensor:
        exponent = -self.slope_ * (_size(batch) - self.start_)
        return MSP().of_logits(batch.logits) * (1 + exponent.clamp(max=STEEPEST).exp())


def _size(batch: Activations) -> Tensor:
    return precise(batch.features.abs().sum(dim=1))
