"""ActSub: what the head reads most of a feature, and how usual the rest of it is."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.neighbors import nearest, unit
from oodscope.detectors.math.numbers import column_by_column, precise
from oodscope.detectors.rectifier import kept, ratio

PARTS = ("both", "decisive", "insignificant")
NEIGHBOURS = 10
SMALLEST = 1e-12
"""Mean distances from the neighbours below this count as this: an image may be one of the training images."""


class ActSub(Detector):
    r"""Energy of the decisive part of a feature times a power of how near its other part is to training images.

    .. math:: s(x) = -A\,B^{\lambda}, \qquad
              A = \log\sum_c e^{z_c}, \quad z = W\,(h_d\,e^{s_1/s_2}) + b, \quad
              B = -\log\Bigl(1-\frac1{10}\sum_{j=1}^{10}\cos(h_i,\,h_i^{(j)})\Bigr)

    :math:`W=U\Sigma V^\top`; :math:`h_d = V_{:k}V_{:k}^\top h` lies along the k leading right singular vectors,
    :math:`h_i = h-h_d` is the rest, :math:`h_i^{(j)}` its nearest training rows by cosine. k makes the mean lengths of
    both parts over the training images as equal as can be; it ends with the rank of W, beyond which vectors are
    arbitrary. :math:`s_1, s_2` are SCALE's sums, of all entries of :math:`h_d` and of the largest.

    Negative energies would turn the order of B around. Where training images have some, A is measured from the least
    of them; an image below even that scores :math:`-A`, above all others. A mean cosine below 0 counts as 0.

    Parameters
    ----------
    percentile : that the largest entries of SCALE lie above; 95, or 97.5 for vision transformers.
    power : :math:`\lambda`; 2, or 1 for vision transformers.
    part : ``both`` as published; ``decisive`` is :math:`-A` alone, ``insignificant`` :math:`-B`.
    bank_fraction : share of the training images that are remembered; ``None`` is all of them up to 128,000.
    seed : which images a fraction below one picks.
    """

    name = "actsub"
    paper = Paper(
        "Activation Subspaces for Out-of-Distribution Detection", "Zöngür, Hesse & Roth", "ICCV 2025, arXiv 2508.21695"
    )
    needs = Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.BANK
    grid = {"percentile": (85.0, 90.0, 92.5, 95.0, 97.5), "power": (0.5, 1.0, 1.5, 2.0)}

    def __init__(
        self,
        percentile: float = 95.0,
        power: float = 2.0,
        part: str = "both",
        bank_fraction: float | None = None,
        seed: int = 0,
    ) -> None:
        self.percentile = percentile
        self.power = power
        self.part = part
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.part not in PARTS:
            raise DetectorError(f"actsub: part must be one of {', '.join(PARTS)}, not {self.part!r}")
        self._learn(train)
        (self.floor_,) = self._floors(train, [self.percentile])

    def _learn(self, train: Activations) -> None:
        assert train.head is not None, "checked before fitting"
        self.axes_ = self._decisive(train, train.head.weight)
        chosen = picked_rows(self.name, train, self.bank_fraction, self.seed)
        bank = remembered(train, "features", chosen, self.device, lambda rows: unit(self._rest(rows)).float())
        # distances do not change when both sides move, and around its own mean a tight cloud keeps its digits
        self.origin_ = bank.mean(dim=0)
        self.bank_ = bank.sub_(self.origin_)

    def _decisive(self, train: Activations, weight: Tensor) -> Tensor:
        """The leading right singular vectors of the head, ``[D, k]``."""
        _, sizes, rows = torch.linalg.svd(weight.double().cpu(), full_matrices=False)
        width = weight.shape[1]
        rank = int((sizes > sizes.amax() * max(weight.shape) * torch.finfo(sizes.dtype).eps).sum())
        if min(rank, width - 1) < 1:
            raise DetectorError(f"actsub: a head of rank {rank} on {width} features leaves nothing to divide")
        axes = precise(rows[: min(rank, width - 1)].T.to(self.device))
        along = precise(torch.zeros(axes.shape[1], device=self.device))
        across = torch.zeros_like(along)
        for chunk in train.chunks(device=self.device, only=("features",)):
            features = precise(chunk.features)
            squares = (features @ axes).square().cumsum(dim=1)
            along += squares.sqrt().sum(dim=0)
            across += (features.square().sum(dim=1, keepdim=True) - squares).clamp(min=0).sqrt().sum(dim=0)
        return axes[:, : 1 + int((along - across).abs().argmin())]

    def _rest(self, features: Tensor) -> Tensor:
        """:math:`h_i`."""
        features = precise(features)
        return features - (features @ self.axes_) @ self.axes_.T

    def _energies(self, batch: Activations, percentiles: Sequence[float]) -> Tensor:
        """:math:`A` at each percentile, one column each."""
        assert batch.head is not None, "checked before scoring"
        for value in percentiles:
            if not 0 <= value < 100:
                raise DetectorError(f"actsub: percentile must lie in [0, 100), not {value}")
        decisive = (precise(batch.features) @ self.axes_) @ self.axes_.T
        ks = [kept(decisive.shape[1], value) for value in percentiles]
        largest = decisive.topk(max(ks), dim=1).values.cumsum(dim=1)
        head = batch.head.to(decisive.device)
        plain, total = decisive @ precise(head.weight).T, decisive.sum(dim=1)
        factors = [ratio(total, largest[:, k - 1]).exp().unsqueeze(1) for k in ks]
        return torch.stack([(plain * each + precise(head.bias)).logsumexp(dim=1) for each in factors], dim=1)

    def _nearness(self, batch: Activations) -> Tensor:
        """:math:`B`."""
        rows = unit(self._rest(batch.features)) - self.origin_
        found = nearest(rows.detach().float(), self.bank_, min(NEIGHBOURS, len(self.bank_)))
        # half the squared distance of unit vectors is one minus their cosine, with all its digits
        gaps = (rows.unsqueeze(1) - self.bank_[found]).square().sum(dim=2) / 2
        return -gaps.mean(dim=1).clamp(SMALLEST, 1.0).log()

    def _floors(self, train: Activations, percentiles: Sequence[float]) -> list[float]:
        """From where A is measured: the least energy of the training images, 0 where that is positive."""
        least = [
            self._energies(chunk, percentiles).amin(dim=0)
            for chunk in train.chunks(device=self.device, only=("features",))
        ]
        return [min(0.0, value) for value in torch.stack(least).amin(dim=0).tolist()]

    def _score(self, batch: Activations) -> Tensor:
        if self.part == "insignificant":
            return -self._nearness(batch)
        energy = self._energies(batch, [self.percentile])[:, 0]
        if self.part == "decisive":
            return -energy
        return _product(energy - self.floor_, self._nearness(batch), self.power)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All percentiles and powers from one search for neighbours."""
        if self.part != "both":
            yield from super().score_grid(candidates, train, val, judged)
            return
        trial = clone(self).to(self.device)
        trial._check(train, fitting=True)
        trial._learn(train)
        percentiles = sorted({float(point["percentile"]) for point in candidates})
        floors = trial._floors(train, percentiles)

        def columns(chunk: Activations) -> Tensor:
            energies, nearness = trial._energies(chunk, percentiles), trial._nearness(chunk)
            places = [percentiles.index(float(point["percentile"])) for point in candidates]
            return torch.stack(
                [
                    _product(energies[:, place] - floors[place], nearness, float(point["power"]))
                    for place, point in zip(places, candidates)
                ],
                dim=1,
            )

        yield from column_by_column(judged, columns, self.device)


def _product(energy: Tensor, nearness: Tensor, power: float) -> Tensor:
    return -torch.where(energy >= 0, energy * nearness**power, energy)
