"""AdaSCALE-L: logits scaled by an amount that depends on how firm the features are."""

from torch import Tensor

from oodscope.detectors.adascale import AdaScale


class AdaScaleL(AdaScale):
    r"""Logits grow with the scaling ratio, less for images whose features move when nudged, as outliers' do.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = r^2\,(Wh + b)

    with the ratio :math:`r` of ``AdaScale``, whose parameters it has.
    """

    name = "adascale_l"

    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        return scale.square() * (product + bias)
