"""Guaranteed MSP: the least that the maximum softmax score can be around an image, proven."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.bounds import CertifiedConfidence
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise


class GuaranteedMSP(Detector):
    r"""One minus an upper bound on the confidence of all images within a radius.

    .. math:: s(x) = 1 - \bar c(x) \le \min_{\lVert\delta\rVert_\infty\le\varepsilon} s_{\mathrm{MSP}}(x + \delta)

    No image of pixels in [0, 1] within the radius has a smaller MSP score, whatever attack looks for it. The AUROC of
    MSP scores of ID images against these of OOD images is therefore below that of any such attack on MSP. For networks
    trained by the recipe ``good``, whose layers have interval bounds; on others the bound says nothing (0).

    Parameters
    ----------
    epsilon : :math:`\varepsilon` in pixels of [0, 1].
    """

    name = "guaranteed_msp"
    paper = Paper(
        "Certifiably Adversarially Robust Detection of Out-of-Distribution Data",
        "Bitterwolf, Meinke & Hein",
        "NeurIPS 2020",
    )
    needs = Needs.BOUNDS
    cost = Cost.PASSES

    def __init__(self, epsilon: float = 0.01) -> None:
        self.epsilon = epsilon

    @property
    def probes(self) -> tuple[Probe, ...]:
        if not self.epsilon > 0:
            raise DetectorError(f"guaranteed_msp: epsilon must be above 0, not {self.epsilon:g}; without one it is msp")
        return (CertifiedConfidence(self.epsilon),)

    def _score(self, batch: Activations) -> Tensor:
        return 1 - precise(batch[self.probes[0].column]).flatten()
