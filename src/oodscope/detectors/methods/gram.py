"""Gram: how far correlations between channels leave the range of the predicted class."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import GramSums
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise

HELD_BACK = 10
"""Where nothing was held out, every tenth training image stands for it."""


class Gram(Detector):
    r"""Relative excess over the smallest and largest value that training images of the predicted class showed.

    .. math:: s(x) = \frac{1}{\max_c p_c}\sum_l \frac{\delta_l(x)}{\mathbb{E}[\delta_l]}, \qquad
              \delta_l(x) = \sum_{p,i} \frac{(m_{lpi} - G_{lpi})_+}{|m_{lpi}|} + \frac{(G_{lpi} - M_{lpi})_+}{|M_{lpi}|}

    :math:`G_{lpi}` are the row sums of the p-th order Gram matrix of stage :math:`l` (see ``GramSums``),
    :math:`m` and :math:`M` their bounds over training images predicted as :math:`\hat y(x)`, and the
    expectation is over held-out images. The paper watches every convolution and activation; here it is the
    last map of each resolution, which a column can hold. A class never predicted has the bounds of all images.

    The p-th root is taken of every entry of the Gram matrix, as in the paper, before the entries of a row are added;
    OpenOOD takes it of the sums. The two orders of images differ little (Spearman correlation 0.995 on the CIFAR-10
    ResNet-18), the scores themselves are not comparable.

    Parameters
    ----------
    powers : the highest order :math:`p`; the paper uses 10, OpenOOD 5.
    """

    name = "gram"
    paper = Paper("Detecting Out-of-Distribution Examples with Gram Matrices", "Sastry & Oore", "ICML 2020")
    needs = Needs.LOGITS | Needs.MAPS | Needs.TRAIN
    cost = Cost.MOMENTS

    def __init__(self, powers: int = 5) -> None:
        self.powers = powers

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (GramSums(self.powers),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.powers < 1:
            raise DetectorError(f"gram: powers must be 1 or more, not {self.powers}")
        alone = val is train
        if alone and len(train) < HELD_BACK:
            raise DetectorError(f"gram: needs {HELD_BACK} training images or more where none are held out")
        self._bound(train, alone)
        total, count, start = torch.zeros(()), 0, 0
        for chunk in val.chunks(device=self.device, only=(*self._columns(), "prediction")):
            kept = held_back(start, len(chunk)) if alone else torch.ones(len(chunk), dtype=torch.bool)
            total = total.to(self.device) + self._deviations(chunk)[kept.to(self.device)].sum(dim=0)
            count, start = count + int(kept.sum()), start + len(chunk)
        self.expected_ = total / count

    def _bound(self, train: Activations, alone: bool) -> None:
        shape = train.shape(self.probes[0].column)[1:]
        lowest = torch.full((train.num_classes, *shape), torch.inf, device=self.device)
        highest = torch.full((train.num_classes, *shape), -torch.inf, device=self.device)
        start = 0
        for chunk in train.chunks(device=self.device, only=(*self._columns(), "prediction")):
            sums, owners = chunk[self.probes[0].column], chunk.prediction
            if alone:
                kept = ~held_back(start, len(chunk)).to(self.device)
                sums, owners = sums[kept], owners[kept]
            start += len(chunk)
            where = owners.view(-1, 1, 1).expand_as(sums)
            lowest.scatter_reduce_(0, where, sums, "amin")
            highest.scatter_reduce_(0, where, sums, "amax")
        self.lowest_ = torch.where(lowest.isfinite(), lowest, lowest.amin(dim=0))
        self.highest_ = torch.where(highest.isfinite(), highest, highest.amax(dim=0))
        # a channel that never fired has the bound 0: measure its excess by the size of its neighbours
        self.floor_ = 1e-6 * self.highest_.amax(dim=(0, 2))

    def _deviations(self, batch: Activations) -> Tensor:
        sums = batch[self.probes[0].column]
        low, high = self.lowest_[batch.prediction], self.highest_[batch.prediction]
        floor = self.floor_.unsqueeze(1).clamp(min=torch.finfo(torch.float32).tiny)
        below = (low - sums).clamp(min=0) / low.abs().maximum(floor)
        above = (sums - high).clamp(min=0) / high.abs().maximum(floor)
        return precise(below + above).sum(dim=2)

    def _score(self, batch: Activations) -> Tensor:
        # a stage on which held-out images never leave their bounds counts as it is
        scale = torch.where(self.expected_ > 0, self.expected_, torch.ones_like(self.expected_))
        confidence = precise(batch.logits).softmax(dim=1).amax(dim=1)
        return (self._deviations(batch) / scale).sum(dim=1) / confidence


def held_back(start: int, count: int) -> Tensor:
    """Which of ``count`` rows from ``start`` on are the tenth of their ten."""
    return (torch.arange(start, start + count) % HELD_BACK) == HELD_BACK - 1
