"""KNN: distance to the k-th nearest training feature."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.neighbors import kth_distances, unit
from oodscope.detectors.math.numbers import column_by_column


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
        chosen = picked_rows(self.name, train, self.bank_fraction, self.seed)
        size = int(chosen.sum())
        if not 1 <= self.k <= size:
            raise DetectorError(f"knn: k={self.k} needs at least {self.k} remembered training images, there are {size}")
        bank = remembered(train, "features", chosen, self.device, unit)
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
        yield from column_by_column(judged, lambda chunk: largest._distances(chunk, ks), self.device)
