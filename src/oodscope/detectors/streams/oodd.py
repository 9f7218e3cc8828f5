"""OODD: a dictionary of the stream's least familiar images, beside a bank of training images."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.math.bank import remembered
from oodscope.detectors.math.neighbors import top_products, unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.streaming import Described, Mode, StreamDetector


class OODD(StreamDetector):
    r"""Cosine to a queue of the stream's least familiar images, minus cosine to a bank of training images.

    .. math:: s(x) = -\bigl(\kappa(x) - \mathrm{cos}_{(K_2)}(x, \text{queue})\bigr), \qquad
              \kappa(x) = \mathrm{cos}_{(K_1)}(x, \text{bank})

    with the K-th largest cosine. The queue holds the ``queue`` images with the smallest :math:`\kappa` seen so far;
    while it has fewer than :math:`K_2`, its smallest cosine counts, and nothing while it is empty. In ``batch`` mode,
    the authors', a batch enters the queue before it is scored, and an image finds itself there; in ``causal`` mode it
    is scored first.

    A queue that is long for its stream fills with ID images, and their neighbours then look OOD: the published 512
    belong to streams of about 20,000 images, half of them OOD. Shorter streams want a shorter queue in proportion.

    Parameters
    ----------
    bank_fraction : share of the training images of each class in the bank, the most confident ones.
    queue : most images in the queue.
    k1, k2 : which neighbours in bank and queue.
    """

    name = "oodd"
    paper = Paper("OODD: Test-time Out-of-Distribution Detection with Dynamic Dictionary", "Yang et al.", "CVPR 2025")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.BANK

    def __init__(
        self,
        mode: Mode = "batch",
        bank_fraction: float = 0.5,
        queue: int = 512,
        k1: int = 10,
        k2: int = 5,
    ) -> None:
        self.mode = mode
        self.bank_fraction = bank_fraction
        self.queue = queue
        self.k1 = k1
        self.k2 = k2

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        chosen = self._confident(train)
        if min(self.k1, self.k2, self.queue) < 1 or self.k1 > int(chosen.sum()):
            raise DetectorError(f"oodd: k1={self.k1} must lie between 1 and the {int(chosen.sum())} images of its bank")
        self.bank_ = remembered(train, "features", chosen, self.device, unit)

    def _confident(self, train: Activations) -> Tensor:
        """Which training images the bank holds: of each class the share with the largest confidence."""
        if not 0 < self.bank_fraction <= 1:
            raise DetectorError(f"oodd: bank_fraction must lie in (0, 1], not {self.bank_fraction}")
        confidence = precise(train.logits).softmax(dim=1).amax(dim=1).cpu()
        labels = train.labels.long().cpu()
        chosen = torch.zeros(len(train), dtype=torch.bool)
        for each in torch.unique(labels):
            rows = (labels == each).nonzero().flatten()
            order = confidence[rows].sort(descending=True, stable=True).indices
            chosen[rows[order[: max(1, round(self.bank_fraction * len(rows)))]]] = True
        return chosen

    def _begin(self) -> None:
        self._rows, self._familiar = self.bank_[:0], precise(self.bank_[:0, 0])

    def _describe(self, batch: Activations) -> Described:
        rows = unit(batch.features)
        return rows, precise(top_products(rows, self.bank_, self.k1)[:, -1])

    def _judge(self, *images: Tensor) -> Tensor:
        rows, base = images
        if not len(self._rows):
            return -base
        return precise((rows @ self._rows.T).topk(min(self.k2, len(self._rows)), dim=1).values[:, -1]) - base

    def _remember(self, *images: Tensor) -> None:
        rows, base = images
        if len(self._rows) == self.queue and bool(base.min() >= self._familiar.max()):
            return
        every = torch.cat([self._familiar, base])
        # stable: of two equally familiar images the earlier stays
        kept = every.sort(stable=True).indices[: self.queue].sort().values
        self._rows, self._familiar = torch.cat([self._rows, rows])[kept], every[kept]
