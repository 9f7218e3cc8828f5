"""AdaSCALE-A: features scaled by an amount that depends on how firm they are."""

import torch
from torch import Tensor

from oodscope.detectors.adascale import AdaScale
from oodscope.detectors.logitscore import LogitScore


class AdaScaleA(AdaScale):
    r"""SCALE, but images whose features move when nudged, as outliers' do, are scaled up less.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\,(h\,e^r) + b, \qquad
              r = \frac{\sum_i \max(h_i, 0)}{\sum_{i\in T_k} \max(h_i, 0)}, \quad
              k = D - \mathrm{round}(D\,p/100)

    where :math:`T_k` are the :math:`k` largest features (one at least) and the percentile depends on the image:

    .. math:: p = p_{low} + (1-F(Q))\,(p_{high}-p_{low}), \qquad
              Q = \sum_{i\in T_{5\%}} \max(h'_i, 0) + 10\sum_{i\in T_{1\%}} |h'_i-h_i|

    :math:`h'` are the features of the image after a small perturbation (see ``PerturbedFeatures``), :math:`F` the
    distribution of :math:`Q` over held-out in-distribution images (training images, where there are no others).
    The largest features are those of :math:`h`, in both sums, as in the paper's own code; equal ones count in
    their order. An image without positive features has :math:`r = 1`.

    Parameters
    ----------
    low, high : the range of :math:`p`. OpenOOD's defaults are 75 and 85; it searches the pairs of 60, 65, ...,
        95, 99.
    seed : which images define :math:`F` where there are more than 5,000.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "adascale_a"

    def __init__(self, low: float = 75, high: float = 85, seed: int = 0, logit_score: LogitScore | None = None) -> None:
        self.low = low
        self.high = high
        self.seed = seed
        self.logit_score = logit_score

    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        return torch.addcmul(bias, product, scale.exp())
