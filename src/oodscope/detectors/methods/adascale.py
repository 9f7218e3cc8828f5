"""AdaSCALE: SCALE with a percentile of its own for each image."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.perturbation import PerturbedFeatures
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import column_by_column, precise
from oodscope.detectors.methods.ebo import EBO
from oodscope.detectors.rectifier import Rectifier, kept, ratio, top_mask, top_values

CORRECTION, SHIFT = 0.05, 0.01
"""Shares of the features, the largest, over which the two terms of the instability are summed."""
SHIFT_WEIGHT = 10.0
REMEMBERED = 5000


class AdaScale(Rectifier):
    r"""What ``adascale_a`` and ``adascale_l`` share: how firm an image's features are, and how much that scales them.

    .. math:: r = \frac{\sum_i \max(h_i, 0)}{\sum_{i\in T_k} \max(h_i, 0)}, \quad
              k = D - \mathrm{round}(D\,p/100)

    where :math:`T_k` are the :math:`k` largest features (one at least) and the percentile depends on the image:

    .. math:: p = p_{low} + (1-F(Q))\,(p_{high}-p_{low}), \qquad
              Q = \sum_{i\in T_{5\%}} \max(h'_i, 0) + 10\sum_{i\in T_{1\%}} |h'_i-h_i|

    :math:`h'` are the features of the image after a small perturbation (see ``PerturbedFeatures``), :math:`F` the
    distribution of :math:`Q` over held-out in-distribution images (training images, where there are no others).
    The largest features are those of :math:`h`, in both sums, as in the paper's own code; equal ones count in
    their order. An image without positive features has :math:`r = 1`.

    Parameters
    ----------
    low, high : the range of :math:`p`. OpenOOD's defaults are 75 and 85; it searches the pairs of 60, 65, ...,
        95, 99.
    seed : which images define :math:`F` where there are more than 5,000.
    logit_score : what judges the new logits; the energy unless given.
    """

    paper = Paper("AdaSCALE: Adaptive Scaling for OOD Detection", "Regmi", "arXiv 2025")
    needs = Rectifier.needs | Needs.GRADIENTS | Needs.HELD_OUT
    cost = Cost.PASSES
    grid = {
        "low": (60, 65, 70, 75, 80, 85, 90, 95, 99),
        "high": (60, 65, 70, 75, 80, 85, 90, 95, 99),
    }

    def __init__(self, low: float = 75, high: float = 85, seed: int = 0, logit_score: LogitScore | None = None) -> None:
        self.low = low
        self.high = high
        self.seed = seed
        self.logit_score = logit_score

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (PerturbedFeatures(),)

    @abstractmethod
    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        """The new logits from ``product`` = :math:`Wh`, the bias and the ratio ``[N, 1]``."""

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        self._check_range(self.low, self.high)
        found = val.per_row(self._instability, device=self.device, only=("features", self.probes[0].column))
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(self.seed))
        self.instability_ = found[order[:REMEMBERED].to(found.device)].sort().values

    def _check_range(self, low: float, high: float) -> None:
        if not 0 <= low < high < 100:
            raise DetectorError(f"{self.name}: needs 0 <= low < high < 100, not low={low}, high={high}")

    def _instability(self, batch: Activations) -> Tensor:
        features, moved = batch.features, batch[self.probes[0].column]
        width = features.shape[1]
        few, many = max(1, int(SHIFT * width)), max(1, int(CORRECTION * width))
        values = top_values(features, many + 1)
        steady = precise(moved.relu() * top_mask(features, values, many)).sum(dim=1)
        shift = precise((features - moved).abs() * top_mask(features, values, few)).sum(dim=1)
        return steady + SHIFT_WEIGHT * shift

    def _score(self, batch: Activations) -> Tensor:
        return self._scores(batch, [(self.low, self.high)])[:, 0]

    def _scores(self, batch: Activations, ranges: Sequence[tuple[float, float]]) -> Tensor:
        """One column per range, from one search for the largest features and one product with the head."""
        assert batch.head is not None, "checked before scoring"
        features, head, judge = batch.features, batch.head.to(self.device), self.logit_score or EBO()
        width = features.shape[1]
        positive = features.relu()
        total = precise(positive).sum(dim=1)
        most = kept(width, min(low for low, _ in ranges))
        sums = precise(top_values(positive, most)).cumsum(dim=1)
        product, bias = precise(features @ head.weight.T), precise(head.bias)
        rank = torch.searchsorted(self.instability_, self._instability(batch), right=True)
        calm = 1 - precise(rank) / len(self.instability_)
        columns = []
        for low, high in ranges:
            count = width - (width * (low + calm * (high - low)) / 100).round().long()
            largest = sums.gather(1, count.clamp(1, most).unsqueeze(1) - 1)
            scale = ratio(total.unsqueeze(1), largest)
            columns.append(judge.of_logits(self._scaled(product, bias, scale)))
        return torch.stack(columns, dim=1)

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        return [point for point in super().search_space(train) if point["low"] < point["high"]]

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All ranges from one search for the largest features and one product with the head."""
        ranges = [(candidate["low"], candidate["high"]) for candidate in candidates]
        for low, high in ranges:
            self._check_range(low, high)
        fitted = clone(self).to(self.device).fit(train, val)
        for part in judged:
            self._check(part)
        yield from column_by_column(judged, lambda chunk: fitted._scores(chunk, ranges), self.device)


class AdaScaleL(AdaScale):
    r"""Logits grow with the scaling ratio, less for images whose features move when nudged, as outliers' do.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = r^2\,(Wh + b)

    with the ratio :math:`r` of ``AdaScale``, whose parameters it has.
    """

    name = "adascale_l"

    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        return scale.square() * (product + bias)


class AdaScaleA(AdaScale):
    r"""SCALE, but images whose features move when nudged, as outliers' do, are scaled up less.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\,(h\,e^r) + b

    with the ratio :math:`r` of ``AdaScale``, whose parameters it has.
    """

    name = "adascale_a"

    def _scaled(self, product: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
        return torch.addcmul(bias, product, scale.exp())
