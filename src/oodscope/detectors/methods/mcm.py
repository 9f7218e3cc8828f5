"""MCM and NegLabel: softmax over cosines with texts of the classes, and of words that name none of them."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.local import LocalConcepts
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import NegativeSums, PairMatches
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


class GLMCM(Detector):
    r"""MCM of the whole image and of its best patch together.

    .. math:: s(x) = -\Bigl(\max_c \mathrm{softmax}_c \frac{\cos(h, w)}{\tau}
              + \lambda \max_{u, c} \mathrm{softmax}_c \frac{\cos(v_u, w)}{\tau}\Bigr)

    with :math:`v_u` the projected value token of patch u (``LocalConcepts``, taken during the plain pass): an image of
    which a small part shows a class is ID, though its whole hardly fits.

    Parameters
    ----------
    temperature : :math:`\tau`, in units of cosine.
    local_weight : :math:`\lambda`.
    """

    name = "gl_mcm"
    paper = Paper(
        "GL-MCM: Global and Local Maximum Concept Matching for Zero-Shot Out-of-Distribution Detection",
        "Miyai et al.",
        "IJCV 2025",
    )
    needs = Needs.FEATURES | Needs.HEAD | Needs.PATCHES
    cost = Cost.HEAD
    grid = {"local_weight": (0.25, 0.5, 1.0, 2.0)}

    def __init__(self, temperature: float = 1.0, local_weight: float = 1.0) -> None:
        self.temperature = temperature
        self.local_weight = local_weight

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (LocalConcepts(self.temperature),)

    def _score(self, batch: Activations) -> Tensor:
        whole = (concept_cosines(batch) / self.temperature).softmax(dim=1).amax(dim=1)
        return -(whole + self.local_weight * precise(batch[self.probes[0].column])[:, 0])


class NegLabel(Detector):
    r"""The share of an image's affinity that goes to negative labels, averaged over groups of them.

    .. math:: s(x) = \frac1G\sum_g \frac{N_g}{P + N_g}, \qquad
              P = \sum_c e^{\cos(h, w_c)/\tau}, \quad N_g = \sum_{j\in g} e^{\cos(h, n_j)/\tau}

    The negative labels :math:`n_j` are mined from a word list when a vision-language classifier is made
    (``models/zoo/negatives.py``); with ``text_head: {pool: csp}`` they are CSP's, whose score is this one. The sums
    over them are taken during the plain pass (``NegativeSums``). Groups keep one unlucky negative label, which happens
    to fit a known image, from deciding alone.

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


class NegRefine(Detector):
    r"""NegLabel, and how much better an image fits "class and negative label" than the negative label alone.

    .. math:: s(x) = -\Bigl(S(x) + \lambda \max_{p, n} \sigma\bigl(100\cos(h, t_{p\,\text{and}\,n})
              - 100\cos(h, t_n)\bigr)\Bigr), \qquad S = \frac1G\sum_g \frac{P}{P + N_g}

    over the nearest classes p and negatives n of the image: a known image that also shows something else is not given
    away by it. Its negatives are those of ``text_head: {pool: negrefine}``, without proper nouns and without kinds of
    the classes; the authors ask a language model for these, we ask WordNet.

    Parameters
    ----------
    temperature, groups : of NegLabel.
    nearest : classes and negatives that are paired.
    pair_weight : :math:`\lambda`.
    """

    name = "negrefine"
    paper = Paper("NegRefine: Refining Negative Label-Based Zero-Shot OOD Detection", "Ansari et al.", "ICCV 2025")
    needs = Needs.FEATURES | Needs.HEAD | Needs.NEGATIVES
    cost = Cost.HEAD

    def __init__(
        self, temperature: float = 0.01, groups: int = 100, nearest: int = 5, pair_weight: float = 2.0
    ) -> None:
        self.temperature = temperature
        self.groups = groups
        self.nearest = nearest
        self.pair_weight = pair_weight

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (NegativeSums(self.temperature, self.groups), PairMatches(self.nearest))

    def _score(self, batch: Activations) -> Tensor:
        sums, pairs = (precise(batch[probe.column]) for probe in self.probes)
        known = torch.logsumexp(concept_cosines(batch) / self.temperature, dim=1, keepdim=True)
        share = torch.sigmoid(known - sums).mean(dim=1)
        return -(share + self.pair_weight * pairs[:, 0])
