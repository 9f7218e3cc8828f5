"""AdaSCALE-A: features scaled by an amount that depends on how firm they are."""

import torch
from torch import Tensor

from oodscope.detectors.adascale import AdaScale


class AdaScaleA(AdaScale):
    r"""SCALE, but images whose features move when nudged, as outliers' do, are scaled up less.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\,(h\,e^r) + b

    with the ratio :math:`r` of ``AdaScale``, whose parameters it has.
    """

    name = "adascale_a"

    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        return torch.addcmul(bias, product, scale.exp())
