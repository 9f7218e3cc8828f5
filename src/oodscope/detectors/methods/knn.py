"""KNN: distance to the k-th nearest training feature."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.bank import Neighbours, neighbours, picked_rows, remembered, smallest_class
from oodscope.detectors.math.neighbors import kth_distances, unit
from oodscope.detectors.math.numbers import column_by_column

OPENOOD_K = 50


class KNN(Detector):
    r"""Distance from a unit feature to its k-th nearest training feature.

    .. math:: s(x) = \lVert \hat h(x) - \hat h_{(k)} \rVert, \qquad \hat h = h / \lVert h \rVert

    Parameters
    ----------
    k : which neighbour. Small k is sharp and noisy; the paper uses 50 for CIFAR-10, 1000 for ImageNet. ``auto`` is a
        fifth of the smallest class in the bank, at most OpenOOD's 50, which ``openood`` stands for.
    bank_fraction : share of the training images that are remembered; the paper shows 1 % to suffice on
        ImageNet. ``None`` is all of them, or 128,000 where there are more: a tenth of ImageNet, 1 GB where all are
        10.5 GB. The bank is the one thing here that must lie in memory.
    seed : which images a fraction below one picks.
    """

    name = "knn"
    paper = Paper("Out-of-Distribution Detection with Deep Nearest Neighbors", "Sun et al.", "ICML 2022")
    needs = Needs.FEATURES | Needs.TRAIN
    optional = Needs.LABELS
    cost = Cost.BANK
    grid = {"k": (50, 100, 200, 500, 1000)}

    def __init__(self, k: Neighbours = "auto", bank_fraction: float | None = None, seed: int = 0) -> None:
        self.k = k
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        chosen = picked_rows(self.name, train, self.bank_fraction, self.seed)
        size = int(chosen.sum())
        k = neighbours(self.name, self.k, OPENOOD_K, train, chosen)
        if not 1 <= k <= size:
            raise DetectorError(f"knn: k={k} needs at least {max(k, 1)} remembered training images, there are {size}")
        self.k_ = k
        bank = remembered(train, "features", chosen, self.device, unit)
        # distances do not change when both sides move, and around its own mean a tight cloud keeps its digits
        self.origin_ = bank.mean(dim=0)
        self.bank_ = bank.sub_(self.origin_)

    def _score(self, batch: Activations) -> Tensor:
        return self._distances(batch, [self.k_])[:, 0]

    def _distances(self, batch: Activations, ks: list[int]) -> Tensor:
        return kth_distances(unit(batch.features) - self.origin_, self.bank_, ks)

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        # from the size of the smallest class on, the k-th neighbour of its images lies in another class
        size = smallest_class(train, picked_rows(self.name, train, self.bank_fraction, self.seed))
        return [point for point in super().search_space(train) if point["k"] < size] or [{"k": "auto"}]

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All k from one search for the largest."""
        fitted = clone(self).set_params(k="auto").to(self.device).fit(train, val)
        ks = [fitted.k_ if candidate["k"] == "auto" else int(candidate["k"]) for candidate in candidates]
        yield from column_by_column(judged, lambda chunk: fitted._distances(chunk, ks), self.device)
