"""NNGuide: energy, guided by how confident and how near the nearest training images are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.bank import Neighbours, neighbours, picked_rows, remembered
from oodscope.detectors.math.neighbors import top_products, unit
from oodscope.detectors.math.numbers import column_by_column, precise

OPENOOD_K = 100


class NNGuide(Detector):
    r"""Energy counts only as far as confident training images lie in the same direction.

    .. math:: s(x) = -E(x)\,\frac1k\sum_{i\in\mathrm{top}_k} E(x_i)\,\hat h(x)\cdot\hat h(x_i), \qquad
              E = \log\sum_c e^{z_c}, \quad \hat h = h/\lVert h\rVert

    over the ``k`` training images of the bank with the largest products.

    Parameters
    ----------
    k : how many products are averaged: 100 in OpenOOD (``openood``), 10 in the authors' own code. ``auto`` is a
        fifth of the smallest class in the bank, at most 100. Where the bank is smaller, all of it is averaged.
    bank_fraction : share of the training images in the bank; 1 % suffices in the paper. The same number of each
        class is drawn, as far as there are enough, where OpenOOD takes the first images of a list that is often
        sorted by class.
    seed : which images are drawn.
    """

    name = "nnguide"
    paper = Paper("Nearest Neighbor Guidance for Out-of-Distribution Detection", "Park, Jung & Teoh", "ICCV 2023")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.BANK
    grid = {"k": (10, 100)}

    def __init__(self, k: Neighbours = "auto", bank_fraction: float = 0.01, seed: int = 0) -> None:
        self.k = k
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        chosen = picked_rows(self.name, train, self.bank_fraction, self.seed, balanced=True)
        k = neighbours(self.name, self.k, OPENOOD_K, train, chosen)
        if k < 1:
            raise DetectorError(f"nnguide: k must be at least 1, not {k}")
        self.k_ = k
        bank = remembered(train, "features", chosen, self.device, unit)
        self.bank_ = bank.mul_(remembered(train, "logits", chosen, self.device, _energy).unsqueeze(1))

    def _score(self, batch: Activations) -> Tensor:
        return self._guided(batch, [self.k_])[:, 0]

    def _guided(self, batch: Activations, ks: list[int]) -> Tensor:
        top = precise(top_products(unit(batch.features), self.bank_, min(max(ks), len(self.bank_))))
        guidance = torch.stack([top[:, :k].mean(dim=1) for k in ks], dim=1)
        return -_energy(batch.logits).unsqueeze(1) * guidance

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All k from one search for the largest."""
        ks = [int(candidate["k"]) for candidate in candidates]
        fitted = clone(self).set_params(k="auto").to(self.device).fit(train, val)
        yield from column_by_column(judged, lambda chunk: fitted._guided(chunk, ks), self.device)


def _energy(logits: Tensor) -> Tensor:
    return precise(logits).logsumexp(dim=1)
