"""WeiPer: how an image's features and randomly perturbed logits are spread, against the usual spread."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP

IMAGES = 10_000
"""Training images behind the mean densities; those of single images vary too little to ask for more."""
PROJECTIONS = 10_000
"""Most perturbed classes that the default number of repeats makes."""
BLOCK = 2**20
"""Perturbed logits held at once."""
FLOORS = 0.01, 0.025
"""Added to every bin before comparing: of features, of perturbed logits."""

MARGIN = 1e-9
"""Of the histograms' range, on either side."""


class WeiPer(Detector):
    r"""Divergence of an image's histograms from the mean ones, minus its confidence under perturbed heads.

    .. math:: s(x) = D(\bar\pi_h, \pi_h) + \lambda_1 D(\bar\pi_z, \pi_z) - \frac{\lambda_2}{r}\sum_{i=1}^r
                     \max_c \mathrm{softmax}_c\bigl(\tilde W_i h + b\bigr), \qquad
              \tilde w_{ic} = w_c + \delta \lVert w_c\rVert \frac{\epsilon_{ic}}{\lVert\epsilon_{ic}\rVert}

    with Gaussian :math:`\epsilon`; :math:`\pi_h` is the histogram of the image's features, :math:`\pi_z` that of its
    perturbed logits under all heads, between the least and the greatest value of the training images. Histograms of an
    image are smoothed by moving averages, :math:`\bar\pi` is the mean of the unsmoothed ones over (at most 10,000)
    training images, and :math:`D(p,q) = \sum (p-q)\log(p/q)` after 0.01 (features) or 0.025 (logits) was added to each
    bin and both were normalised. Follows the authors' code; the defaults are their CIFAR-10 setting, the grid is ours.

    Parameters
    ----------
    repeats : perturbed heads :math:`r`. ``None`` is the paper's 100, or fewer where these would exceed 10,000 classes.
    distance : :math:`\delta`, length of a perturbation relative to its weight.
    bins : of the histograms.
    smoothing, smoothing_logits : widths of the two moving averages, in bins: of the features' histograms, and of the
        perturbed logits'.
    kl_weight, msp_weight : :math:`\lambda_1, \lambda_2`.
    seed : of the perturbations, and of the choice of training images.
    """

    name = "weiper"
    paper = Paper(
        "WeiPer: OOD Detection using Weight Perturbations of Class Projections",
        "Granz, Heurich & Landgraf",
        "NeurIPS 2024",
    )
    needs = Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.HEAD
    version = 2
    grid = {"kl_weight": (0.1, 1.0, 2.5), "msp_weight": (0.1, 1.0, 2.5)}

    def __init__(
        self,
        repeats: int | None = None,
        distance: float = 1.8,
        bins: int = 100,
        smoothing: int = 4,
        smoothing_logits: int = 15,
        kl_weight: float = 2.5,
        msp_weight: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.repeats = repeats
        self.distance = distance
        self.bins = bins
        self.smoothing = smoothing
        self.smoothing_logits = smoothing_logits
        self.kl_weight = kl_weight
        self.msp_weight = msp_weight
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        for what in ("bins", "smoothing", "smoothing_logits") + (() if self.repeats is None else ("repeats",)):
            if getattr(self, what) < 1:
                raise DetectorError(f"weiper: {what} must be at least 1, not {getattr(self, what)}")
        generator = torch.Generator().manual_seed(self.seed)
        weight, bias = train.head.weight.double().cpu(), train.head.bias.double().cpu()
        repeats = self.repeats or max(1, min(100, PROJECTIONS // len(weight)))
        noise = torch.randn(repeats, *weight.shape, generator=generator, dtype=torch.float64)
        noise *= self.distance * weight.norm(dim=1, keepdim=True) / noise.norm(dim=2, keepdim=True)
        self.weight_ = precise((weight + noise).flatten(0, 1).to(self.device))
        self.bias_ = precise(bias.repeat(repeats).to(self.device))
        self.classes_ = len(weight)
        chosen = torch.randperm(len(train), generator=generator)[:IMAGES].sort().values
        known = train if len(chosen) == len(train) else train.take(chosen.numpy())
        ranges = [torch.stack([torch.stack(part.aminmax()) for part in block]) for block in self._blocks(known)]
        low, high = torch.stack(ranges).amin(dim=0)[:, 0], torch.stack(ranges).amax(dim=0)[:, 1]
        # a little wider, so that rounding leaves no extreme outside
        self.low_ = low - MARGIN * (high - low)
        self.width_ = ((1 + 2 * MARGIN) * (high - low)).clamp(min=torch.finfo(low.dtype).tiny)
        sums = low.new_zeros(2, self.bins)
        for block in self._blocks(known):
            sums += torch.stack([self._histogram(values, kind).sum(dim=0) for kind, values in enumerate(block)])
        self.means_ = sums / len(known)

    def _blocks(self, activations: Activations) -> Iterator[tuple[Tensor, Tensor]]:
        for chunk in activations.chunks(device=self.device, only=("features",)):
            for features in torch.split(precise(chunk.features), max(1, BLOCK // len(self.weight_))):
                yield features, linear(features, self.weight_, self.bias_)

    def _histogram(self, values: Tensor, kind: int) -> Tensor:
        """Shares ``[N, bins]``; what lies outside the range counts in the total only."""
        place = ((values - self.low_[kind]) / self.width_[kind] * self.bins).floor().clamp(-1, self.bins).long()
        place = torch.where(place < 0, self.bins, place)
        counts = values.new_zeros(len(values), self.bins + 1)
        counts.scatter_add_(1, place, values.new_ones(1, 1).expand_as(place))
        return counts[:, : self.bins] / values.shape[1]

    def _divergence(self, values: Tensor, kind: int) -> Tensor:
        mean = self.means_[kind] + FLOORS[kind]
        average = _moving_average(self.bins, (self.smoothing, self.smoothing_logits)[kind]).to(values)
        own = self._histogram(values, kind) @ average + FLOORS[kind]
        mean, own = mean / mean.sum(), own / own.sum(dim=1, keepdim=True)
        terms: Tensor = (mean - own) * (mean / own).log()
        return terms.sum(dim=1)

    def _terms(self, batch: Activations) -> Tensor:
        """The divergences of features and perturbed logits, and the mean confidence, ``[N, 3]``."""
        rows = []
        for features, logits in self._blocks(batch):
            doubt = MSP().of_logits(logits.reshape(-1, self.classes_)).reshape(len(features), -1).mean(dim=1)
            rows.append(torch.stack([self._divergence(features, 0), self._divergence(logits, 1), 1 - doubt], dim=1))
        return torch.cat(rows)

    def _score(self, batch: Activations) -> Tensor:
        return self._terms(batch) @ precise(torch.tensor([1.0, self.kl_weight, -self.msp_weight])).to(self.device)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """The weights change nothing but the sum."""
        fitted = clone(self).to(self.device).fit(train, val)
        parts = [part.per_row(fitted._terms, device=self.device, only=("features",)) for part in judged]
        for point in candidates:
            kl, msp = point.get("kl_weight", self.kl_weight), point.get("msp_weight", self.msp_weight)
            yield [terms[:, 0] + kl * terms[:, 1] - msp * terms[:, 2] for terms in parts]


def _moving_average(bins: int, width: int) -> Tensor:
    """The matrix that replaces each bin by the mean of the ``width`` bins around it; the outermost repeat."""
    offsets = torch.arange(width) - (width - 1) // 2
    sources = (torch.arange(bins).unsqueeze(1) + offsets).clamp(0, bins - 1)
    matrix = torch.zeros(bins, bins, dtype=torch.float64)
    matrix.scatter_add_(1, sources, torch.full(sources.shape, 1 / width, dtype=torch.float64))
    return matrix.T
