"""NegLabel: do words that name none of the classes fit the image better than those that do?"""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import NegativeSums
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.mcm import concept_cosines
from oodscope.detectors.precision import precise


class NegLabel(Detector):
    r"""The share of an image's affinity that goes to negative labels, averaged over groups of them.

    .. math:: s(x) = \frac1G\sum_g \frac{N_g}{P + N_g}, \qquad
              P = \sum_c e^{\cos(h, w_c)/\tau}, \quad N_g = \sum_{j\in g} e^{\cos(h, n_j)/\tau}

    The negative labels :math:`n_j` are mined from a word list when a vision-language classifier is made
    (``models/negatives.py``); the sums over them are taken during the plain pass (``NegativeSums``). Groups keep one
    unlucky negative label, which happens to fit a known image, from deciding alone.

    Parameters
    ----------
    temperature : :math:`\tau`, in units of cosine; 0.01 is also what CLIP learns.
    groups : :math:`G`; never more than there are negative labels.
    """

    name = "neglabel"
    paper = Paper(
        "Negative Label Guided OOD Detection with Pretrained Vision-Language Models", "Jiang et al.", "ICLR 2024"
    )
    needs = Needs.FEATURES | Needs.HEAD | Needs.NEGATIVES
    cost = Cost.HEAD
    grid = {"temperature": (0.005, 0.01, 0.02, 0.05)}

    def __init__(self, temperature: float = 0.01, groups: int = 100) -> None:
        self.temperature = temperature
        self.groups = groups

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (NegativeSums(self.temperature, self.groups),)

    def _score(self, batch: Activations) -> Tensor:
        known = torch.logsumexp(concept_cosines(batch) / self.temperature, dim=1, keepdim=True)
        # N / (P + N) from the logarithms of both: known images keep distinct scores instead of tying at 0
        return torch.sigmoid(precise(batch[self.probes[0].column]) - known).mean(dim=1)
