"""KNN: distance to the k-th nearest training feature."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from oodscope.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.neighbors import kth_distances, unit


class KNN(Detector):
    r"""Distance from a unit feature to its k-th nearest training feature.

    .. math:: s(x) = \lVert \hat h(x) - \hat h_{(k)} \rVert, \qquad \hat h = h / \lVert h \rVert

    Parameters
    ----------
    k : which neighbour. Small k is sharp and noisy; the paper uses 50 for CIFAR-10, 1000 for ImageNet.
    bank_fraction : share of the training images that are remembered; the paper shows 1 % to suffice on
        ImageNet. The bank is the one thing here that must lie in memory.
    seed : which images a fraction below one picks.
    """

    name = "knn"
    paper = Paper("Out-of-Distribution Detection with Deep Nearest Neighbors", "Sun et al.", "ICML 2022")
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.BANK
    grid = {"k": (50, 100, 200, 500, 1000)}

    def __init__(self, k: int = 50, bank_fraction: float = 1.0, seed: int = 0) -> None:
        self.k = k
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if not 0 < self.bank_fraction <= 1:
            raise DetectorError(f"knn: bank_fraction must lie in (0, 1], not {self.bank_fraction}")
        size = max(1, round(self.bank_fraction * len(train)))
        if not 1 <= self.k <= size:
            raise DetectorError(f"knn: k={self.k} needs at least {self.k} remembered training images, there are {size}")
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(self.seed))
        chosen = torch.zeros(len(train), dtype=torch.bool)
        chosen[order[:size]] = True
        bank, seen, filled = torch.empty(size, train.features.shape[1], device=self.device), 0, 0
        for chunk in train.chunks(device=self.device, only=("features",)):
            kept = chunk.features[chosen[seen : seen + len(chunk)].to(self.device)]
            bank[filled : filled + len(kept)] = unit(kept)
            seen, filled = seen + len(chunk), filled + len(kept)
        # distances do not change when both sides move, and around its own mean a tight cloud keeps its digits
        self.origin_ = bank.mean(dim=0)
        self.bank_ = bank.sub_(self.origin_)

    def _score(self, batch: Activations) -> Tensor:
        return self._distances(batch, [self.k])[:, 0]

    def _distances(self, batch: Activations, ks: list[int]) -> Tensor:
        return kth_distances(unit(batch.features) - self.origin_, self.bank_, ks)

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        return [point for point in super().search_space(train) if point["k"] <= self.bank_fraction * len(train)]

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All k from one search for the largest."""
        ks = [int(candidate["k"]) for candidate in candidates]
        largest = clone(self).set_params(k=max(ks)).to(self.device).fit(train, val)
        columns = [part.per_row(lambda chunk: largest._distances(chunk, ks), device=self.device) for part in judged]
        for position in range(len(ks)):
            yield [scores[:, position] for scores in columns]
