"""TANL: of a corpus of negative labels, those that the stream's outliers activate."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import NegativeCosines
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.mcm import concept_cosines
from oodscope.detectors.streaming import Described, Mode, StreamDetector


class TANL(StreamDetector):
    r"""Negative labels ordered by how much more the stream's outliers activate them than its known images do.

    .. math:: a_j = \frac1{|O|}\sum_{x\in O} p_j(x) - \frac1{|I|}\sum_{x\in I} p_j(x), \qquad
              s(x) = -\frac1K\sum_{k=1}^{K} \frac{P}{P + N_{(1)} + \dots + N_{(k)}}

    with :math:`p` the softmax over classes and negatives, :math:`P` and :math:`N_j` the sums of
    :math:`e^{\cos/\tau}` over the classes and of one negative, negatives in falling order of activation: averaging
    over growing prefixes gives later ones less weight. :math:`O` and :math:`I` are the last ``queue`` images whose
    score fell above and below the threshold of Otsu's criterion over all scores so far. Until both have an image, the
    negatives keep the order of their corpus, farthest from the classes first.

    How confident an image must be to enter a queue was not at hand; here every image enters one (unverified form).

    Parameters
    ----------
    temperature : :math:`\tau`.
    negatives : :math:`K`; never more than the corpus has.
    queue : images in each queue.
    """

    name = "tanl"
    paper = Paper("TANL", "unverified form of the equations", "CVPR 2026")
    needs = Needs.FEATURES | Needs.HEAD | Needs.NEGATIVES
    cost = Cost.HEAD
    unverified_form = True

    def __init__(
        self, mode: Mode = "causal", temperature: float = 0.01, negatives: int = 1000, queue: int = 300
    ) -> None:
        self.mode = mode
        self.temperature = temperature
        self.negatives = negatives
        self.queue = queue

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (NegativeCosines(),)

    def _begin(self) -> None:
        if self.negatives < 1 or self.queue < 1:
            raise DetectorError("tanl: negatives and queue are 1 or more")
        self._past: list[float] = []
        self._known: list[Tensor] = []
        self._foreign: list[Tensor] = []

    def _describe(self, batch: Activations) -> Described:
        classes = concept_cosines(batch) / self.temperature
        negatives = precise(batch[self.probes[0].column]) / self.temperature
        known = classes.logsumexp(dim=1)
        return known, negatives, torch.cat([classes, negatives], dim=1).softmax(dim=1)[:, classes.shape[1] :]

    def _judge(self, *images: Tensor) -> Tensor:
        known, negatives, _ = images
        prefixes = negatives[:, self._order(negatives.shape[1])].logcumsumexp(dim=1)
        return -torch.sigmoid(known.unsqueeze(1) - prefixes).mean(dim=1)

    def _order(self, corpus: int) -> Tensor:
        """The negatives that count, most activated first."""
        if not (self._known and self._foreign):
            return torch.arange(min(self.negatives, corpus))
        active = torch.stack(self._foreign).mean(dim=0) - torch.stack(self._known).mean(dim=0)
        return active.sort(descending=True, stable=True).indices[: self.negatives]

    def _remember(self, *images: Tensor) -> None:
        activations, scores = images[2], self._judge(*images).tolist()
        self._past += scores
        border = otsu(torch.tensor(self._past, dtype=torch.float64))
        for row, score in zip(activations, scores):
            queue = self._foreign if score > border else self._known
            queue.append(row)
            del queue[: -self.queue]


def otsu(scores: Tensor) -> float:
    """The value that cuts scores into two groups with the largest variance between them; the largest where all tie."""
    ordered, count = scores.sort().values, len(scores)
    below = torch.arange(1, count, dtype=ordered.dtype)
    sums = ordered.cumsum(dim=0)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (count - below)
    between = below * (count - below) * (high - low) ** 2
    between = torch.where(ordered[1:] > ordered[:-1], between, -1.0)  # a cut inside ties is none
    if not len(between) or float(between.max()) <= 0:
        return float(ordered[-1])
    return float(ordered[int(between.argmax())])
