"""MCM: maximum concept matching, the softmax over cosines with the classes' texts."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.msp import MSP
from oodscope.detectors.neighbors import unit
from oodscope.detectors.precision import precise


class MCM(Detector):
    r"""One minus the largest softmax probability over cosines between an image and the concepts of its classes.

    .. math:: s(x) = 1 - \max_c \frac{e^{\cos(h, w_c)/\tau}}{\sum_j e^{\cos(h, w_j)/\tau}}

    The rows :math:`w_c` of a vision-language head are text embeddings. Its own logits are cosines at a learnt
    temperature of about 0.01, at which foreign images too look certain; MCM takes :math:`\tau = 1`, which barely
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
