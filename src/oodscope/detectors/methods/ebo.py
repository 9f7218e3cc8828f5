"""EBO: the free energy of the logits."""

from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.softmax import gaps, powers_


class EBO(LogitScore):
    r"""Free energy: low where any class has support.

    .. math:: s(x) = -T \log\sum_c e^{z_c(x)/T}

    Parameters
    ----------
    temperature : :math:`T`. Small T tends to the largest logit; the paper uses 1.
    """

    name = "ebo"
    log_probabilities_ok = False
    paper = Paper("Energy-based Out-of-distribution Detection", "Liu et al.", "NeurIPS 2020")

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def of_logits(self, logits: Tensor) -> Tensor:
        if self.temperature <= 0:
            raise DetectorError(f"ebo: temperature must be positive, not {self.temperature}")
        _, rest = powers_(gaps(logits).div_(self.temperature))
        return -precise(logits.amax(dim=1)) - self.temperature * rest.log1p()
