"""MCM and NegLabel: softmax over cosines with texts of the classes, and of words that name none of them."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import NegativeSums
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP


class MCM(Detector):
    r"""One minus the largest softmax probability over cosines between an image and the concepts of its classes.

    .. math:: s(x) = 1 - \max_c \frac{e^{\cos(h, w_c)/\tau}}{\sum_j e^{\cos(h, w_j)/\tau}}

    The rows :math:`w_c` of a vision-language head are text embeddings. Its own logits are cosines at a learnt
    temperature of about 0.01, at which OOD images too look certain; MCM takes :math:`\tau = 1`, which barely
    separates the classes and thereby keeps how well the best one fits. On a head that was trained on images it is the
    same formula with the head's rows as concepts. A feature of zeros points nowhere: its cosines count as 0.

    Parameters
    ----------
    temperature : :math:`\tau`, in units of cosine.
    """

    name = "mcm"
    paper = Paper(
        "Delving into Out-of-Distribution Detection with Vision-Language Representations", "Ming et al.", "NeurIPS 2022"
    )
    needs = Needs.FEATURES | Needs.HEAD
    cost = Cost.HEAD
    grid = {"temperature": (0.01, 0.1, 1.0, 10.0)}

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def _score(self, batch: Activations) -> Tensor:
        return MSP().of_logits(concept_cosines(batch) / self.temperature)


def concept_cosines(batch: Activations) -> Tensor:
    """Cosines of features with the rows of the head, ``[N, C]``, in float64: differences between them are small."""
    assert batch.head is not None, "checked before scoring"
    return unit(precise(batch.features)) @ unit(precise(batch.head.weight.to(batch.features.device))).T


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
