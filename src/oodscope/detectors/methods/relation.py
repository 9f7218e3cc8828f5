"""Relation: how much training images agree with an image, in direction and in prediction."""

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
from oodscope.detectors.math.neighbors import BANK, unit
from oodscope.detectors.math.numbers import column_by_column, on_host, precise

WEAK = 0.03
"""Relations up to this are not counted."""
TILE = 1024
"""Images of the bank that are compared at once."""


class Relation(Detector):
    r"""An image in distribution has many training images of like direction and like prediction.

    .. math:: s(x) = -\sum_{j:\,k_j > 0.03} k_j^{\,\mathtt{pow}}, \qquad
              k_j = \max\bigl(0, \cos(h, h_j)\bigr)\; p\cdot p_j

    over the training images, with the softmax probabilities :math:`p`. The limit of 0.03 is OpenOOD's.

    Parameters
    ----------
    pow : how much stronger relations count more; OpenOOD searches 1 to 8.
    bank_fraction : share of the training images that are remembered, with features and probabilities. ``None`` is all
        of them, or 128,000 where there are more: a tenth of ImageNet, 1.6 GB where all are 16 GB.
    seed : which images a fraction below one picks.
    """

    name = "relation"
    paper = Paper(
        "Neural Relation Graph: A Unified Framework for Identifying Label Noise and Outlier Data",
        "Kim, Yun & Song",
        "NeurIPS 2023",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN
    cost = Cost.BANK
    grid = {"pow": (1, 2, 4, 6, 8)}

    def __init__(self, pow: float = 1, bank_fraction: float | None = None, seed: int = 0) -> None:
        self.pow = pow
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.pow <= 0:
            raise DetectorError(f"relation: pow must be positive, not {self.pow}")
        chosen = picked_rows(self.name, train, self.bank_fraction, self.seed)
        chances = remembered(train, "logits", chosen, self.device, lambda logits: logits.softmax(dim=1))
        # images of one prediction side by side, so that most tiles concern few of the images to be scored
        order = chances.argmax(dim=1).argsort(stable=True)
        self.chances_ = chances[order]
        self.bank_ = remembered(train, "features", chosen, self.device, unit)[order]
        self.ceilings_ = torch.stack([tile.amax(dim=0) for tile in torch.split(self.chances_, TILE)])

    def _score(self, batch: Activations) -> Tensor:
        return self._sums(batch, [self.pow])[:, 0]

    def _sums(self, batch: Activations, powers: list[float]) -> Tensor:
        features, chances = unit(batch.features), batch.logits.softmax(dim=1)
        sums = precise(features.new_zeros(len(features), len(powers)))
        # a cosine is at most 1: where even the highest chances of a tile agree too little, it need not be looked at;
        # an accelerator multiplies whole tiles faster than it says which rows they concern
        host = on_host(features)
        concerned = chances @ self.ceilings_.T > WEAK
        for start in range(0, len(self.bank_), TILE if host else BANK):
            tile = slice(start, start + (TILE if host else BANK))
            rows = concerned[:, start // TILE].nonzero().flatten() if host else slice(None)
            relations = features[rows] @ self.bank_[tile].T
            relations *= chances[rows] @ self.chances_[tile].T
            # negative relations go with the weak ones
            relations.masked_fill_(relations <= WEAK, 0)
            sums[rows] -= torch.stack([precise(relations.pow(power).sum(dim=1)) for power in powers], dim=1)
        return sums

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All powers from one look at the bank."""
        powers = [float(candidate["pow"]) for candidate in candidates]
        any_power = clone(self).to(self.device).fit(train, val)
        yield from column_by_column(judged, lambda chunk: any_power._sums(chunk, powers), self.device)
