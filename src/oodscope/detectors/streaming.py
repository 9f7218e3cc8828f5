"""Stream detectors: scores that depend on the images before; their track is ``transductive``, ranked apart."""

from abc import abstractmethod
from typing import Literal, get_args

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import remembered
from oodscope.detectors.math.neighbors import top_products, unit
from oodscope.detectors.math.numbers import precise

Mode = Literal["causal", "batch"]
"""``causal``: a score depends on earlier images alone, so that it does not matter how the stream is cut into batches.
``batch``: on the images of its own batch too, as the released code of most such methods has it."""


class StreamDetector(Detector):
    """A detector with a memory: ``start`` empties it, ``observe`` takes the next images and scores them, in order.

    ``score`` starts anew and observes everything once, so its result depends on the order of the rows.
    """

    mode: str

    def start(self) -> None:
        """Forget the stream; what was fitted stays."""
        if self.learns and not self.fitted:
            raise DetectorError(f"{self.name}: not fitted. Call fit(train, val) first")
        if self.mode not in get_args(Mode):
            raise DetectorError(f"{self.name}: mode must be causal or batch, not {self.mode!r}")
        self._begin()

    def observe(self, activations: Activations) -> Tensor:
        """Scores of the next images of the stream, larger = more OOD."""
        rows, base = self._describe(activations.features)
        if self.mode == "batch":
            self._remember(rows, base)
            return precise(self._judge(rows, base))
        scores = []
        for number in range(len(rows)):
            one = slice(number, number + 1)
            scores.append(self._judge(rows[one], base[one]))
            self._remember(rows[one], base[one])
        return precise(torch.cat(scores))

    def score(self, activations: Activations) -> Tensor:
        self.start()
        return super().score(activations)

    def _score(self, batch: Activations) -> Tensor:
        return self.observe(batch)

    @abstractmethod
    def _begin(self) -> None:
        """Empty the memory."""

    @abstractmethod
    def _describe(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """What does not depend on the stream: unit features, and a number for each image."""

    @abstractmethod
    def _judge(self, rows: Tensor, base: Tensor) -> Tensor:
        """Scores against the memory as it is."""

    @abstractmethod
    def _remember(self, rows: Tensor, base: Tensor) -> None:
        """Take images into the memory, in order."""


class OODD(StreamDetector):
    r"""A dictionary of the stream's least familiar images, beside a bank of training images.

    .. math:: s(x) = -\bigl(\kappa(x) - \mathrm{cos}_{(K_2)}(x, \text{queue})\bigr), \qquad
              \kappa(x) = \mathrm{cos}_{(K_1)}(x, \text{bank})

    with the K-th largest cosine. The queue holds the ``queue`` images with the smallest :math:`\kappa` seen so far;
    while it has fewer than :math:`K_2`, its smallest cosine counts, and nothing while it is empty. In ``batch`` mode,
    the authors', a batch enters the queue before it is scored, and an image finds itself there; in ``causal`` mode it
    is scored first.

    Parameters
    ----------
    bank_fraction : share of the training images of each class in the bank, the most confident ones.
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
        self._rows = self.bank_[:0]
        self._familiar = precise(self.bank_[:0, 0])

    def _describe(self, features: Tensor) -> tuple[Tensor, Tensor]:
        rows = unit(features)
        return rows, precise(top_products(rows, self.bank_, self.k1)[:, -1])

    def _judge(self, rows: Tensor, base: Tensor) -> Tensor:
        if not len(self._rows):
            return -base
        return precise((rows @ self._rows.T).topk(min(self.k2, len(self._rows)), dim=1).values[:, -1]) - base

    def _remember(self, rows: Tensor, base: Tensor) -> None:
        if len(self._rows) == self.queue and bool(base.min() >= self._familiar.max()):
            return
        every = torch.cat([self._familiar, base])
        # stable: of two equally familiar images the earlier stays
        kept = every.sort(stable=True).indices[: self.queue].sort().values
        self._rows, self._familiar = torch.cat([self._rows, rows])[kept], every[kept]


class RunningPrototypes(StreamDetector):
    r"""Two running means of the stream, of what a base score calls ID and OOD; images are placed between them.

    .. math:: s(x) = \hat h\cdot\bigl(\hat\mu_{\mathrm{OOD}} - \hat\mu_{\mathrm{ID}}\bigr)

    After the idea of DART, of which only the abstract was at hand (unverified form; one layer). The base score is the
    negative cosine to the nearest class mean; it enters the ID mean below ``quantile`` of its values on held-out
    images, and the OOD mean above. The ID mean begins with the training mean; until the OOD mean has an image, the
    base score stands.

    Parameters
    ----------
    quantile : of the held-out images' base scores.
    weight : of a new image in the running means.
    """

    name = "running_prototypes"
    paper = Paper("DART", "unverified form of the abstract", "arXiv 2603.15213")
    needs = Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS
    unverified_form = True

    def __init__(self, mode: Mode = "causal", quantile: float = 0.95, weight: float = 0.02) -> None:
        self.mode = mode
        self.quantile = quantile
        self.weight = weight

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        labels, rows = train.labels.long(), precise(unit(train.features))
        classes = torch.unique(labels)
        self.means_ = unit(torch.stack([rows[labels == each].mean(dim=0) for each in classes]))
        self.centre_ = unit(rows.mean(dim=0, keepdim=True))
        held = -(precise(unit(val.features)) @ self.means_.T).amax(dim=1)
        self.border_ = held.quantile(self.quantile)

    def _begin(self) -> None:
        self._known, self._foreign = self.centre_.clone(), self.centre_[:0]

    def _describe(self, features: Tensor) -> tuple[Tensor, Tensor]:
        rows = precise(unit(features))
        return rows, -(rows @ self.means_.T).amax(dim=1)

    def _judge(self, rows: Tensor, base: Tensor) -> Tensor:
        return base if not len(self._foreign) else (rows @ (self._foreign - self._known).T)[:, 0]

    def _remember(self, rows: Tensor, base: Tensor) -> None:
        for row, foreign in zip(rows, (base > self.border_).tolist()):
            mean = self._foreign if foreign else self._known
            moved = unit((1 - self.weight) * mean + self.weight * row) if len(mean) else row.unsqueeze(0)
            if foreign:
                self._foreign = moved
            else:
                self._known = moved
