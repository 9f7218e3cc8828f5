"""CF-OOD: among whose nearest neighbours an image is."""

import math
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
from oodscope.detectors.math.neighbors import QUERIES, unit
from oodscope.detectors.math.numbers import column_by_column, precise

REFERENCES = 5_000
"""Most references: all pairs of them are kept, in 200 MB."""
DIGITS = 9
"""Of a distance: rounding must not order images that are equally far."""


class CFOOD(Detector):
    r"""Concentration-free outlier factor: how large a neighbourhood must be for a few references to have the image in.

    .. math:: s(x) = \frac1n\,\rho_{(\lceil\varrho n\rceil)}(x), \qquad
              \rho_i(x) = 1 + \#\{j\ne i: \lVert\hat h_j-\hat h_i\rVert < \lVert\hat h(x)-\hat h_i\rVert\}

    with :math:`\rho_{(k)}` the k-th smallest of the ranks that the n references give the image. Ranks are exact, where
    OpenOOD rounds them up to a grid of 230 values. There are at most n different scores: expect ties.

    Parameters
    ----------
    quantile : :math:`\varrho`; OpenOOD searches 0.001 to 0.05.
    bank_fraction : share of the training images that are references, at most 5,000 of them.
    seed : which images those are.
    """

    name = "cfood"
    paper = Paper(
        "CF-OOD: Concentration-Free Density Estimation for Reliable Out-of-Distribution Detection",
        "Angiulli, Fassetti & Zupi",
        "SISAP 2025",
    )
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.BANK
    grid = {"quantile": (0.001, 0.005, 0.01, 0.05)}

    def __init__(self, quantile: float = 0.01, bank_fraction: float = 0.1, seed: int = 0) -> None:
        self.quantile = quantile
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if not 0 < self.quantile <= 1:
            raise DetectorError(f"cfood: quantile must lie in (0, 1], not {self.quantile}")
        fraction = self.bank_fraction if self.bank_fraction > 1 else min(self.bank_fraction, REFERENCES / len(train))
        chosen = picked_rows(self.name, train, fraction, self.seed)
        self.bank_ = remembered(train, "features", chosen, self.device, lambda rows: unit(precise(rows)))
        between = self._distances(self.bank_)
        # a reference is not its own neighbour
        between.fill_diagonal_(torch.inf)
        self.between_ = between.sort(dim=1).values[:, :-1].contiguous()

    def _distances(self, rows: Tensor) -> Tensor:
        """Squared distances from each reference (rows) to each image (columns), to ``DIGITS`` digits."""
        squared = self.bank_.square().sum(dim=1, keepdim=True) + rows.square().sum(dim=1) - 2 * (self.bank_ @ rows.T)
        return squared.round(decimals=DIGITS)

    def _score(self, batch: Activations) -> Tensor:
        return self._factors(batch, [self.quantile])[:, 0]

    def _factors(self, batch: Activations, quantiles: list[float]) -> Tensor:
        count = len(self.bank_)
        places = [max(1, math.ceil(round(quantile * count, DIGITS))) for quantile in quantiles]
        parts = []
        for rows in torch.split(unit(precise(batch.features)), QUERIES):
            ranks = 1 + torch.searchsorted(self.between_, self._distances(rows))
            smallest = ranks.T.contiguous().topk(max(places), dim=1, largest=False).values
            parts.append(smallest[:, [place - 1 for place in places]])
        return precise(torch.cat(parts)) / count

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All quantiles from the same ranks."""
        fitted = clone(self).to(self.device).fit(train, val)
        quantiles = [float(candidate["quantile"]) for candidate in candidates]
        for part in judged:
            self._check(part)
        yield from column_by_column(judged, lambda chunk: fitted._factors(chunk, quantiles), self.device)
