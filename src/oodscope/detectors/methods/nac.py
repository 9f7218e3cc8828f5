"""NAC: how often training images have put each neuron into the state it is in now."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.numbers import column_by_column, precise


class NAC(Detector):
    r"""Outliers put neurons into states that training images have rarely covered.

    .. math:: s(x) = -\frac1D\sum_i \min\Bigl(\frac{n_i(a_i)}{O}, 1\Bigr), \qquad
              a = \sigma\bigl(\alpha\,h\odot\nabla_h \mathrm{KL}(u\,\Vert\,p)\bigr), \quad
              \nabla_h \mathrm{KL}(u\,\Vert\,p) = W^\top(p-u)

    with :math:`p` the softmax, :math:`u` the uniform distribution, and :math:`n_i(a)` how many of the remembered
    training images put neuron :math:`i` into the same bin as :math:`a`. This is NAC-UE on the penultimate layer,
    where the gradient has the closed form above; the paper adds earlier layers. The bins have equal width; in the
    authors' code they are finer around one half.

    Parameters
    ----------
    alpha : steepness of the sigmoid :math:`\sigma`.
    bins : into how many bins a state between 0 and 1 may fall.
    enough : :math:`O`, how many images cover a bin fully.
    rows : how many training images are looked at. The three defaults above, and this one, are those of the
        authors' configuration for CIFAR-10; for CIFAR-100 they take ``alpha=50``, for ImageNet ``alpha=3000,
        enough=10``.
    seed : which images those are.
    """

    name = "nac"
    paper = Paper(
        "Neuron Activation Coverage: Rethinking Out-of-distribution Detection and Generalization",
        "Liu et al.",
        "ICLR 2024",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.HEAD
    grid = {"alpha": (50.0, 100.0, 3000.0), "bins": (50, 500), "enough": (10, 50, 500)}

    def __init__(self, alpha: float = 100.0, bins: int = 50, enough: int = 50, rows: int = 1000, seed: int = 0) -> None:
        self.alpha = alpha
        self.bins = bins
        self.enough = enough
        self.rows = rows
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.alpha <= 0:
            raise DetectorError(f"nac: alpha must be positive, not {self.alpha}")
        for name in ("bins", "enough", "rows"):
            if getattr(self, name) < 1:
                raise DetectorError(f"nac: {name} must be at least 1, not {getattr(self, name)}")
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(self.seed))
        chosen = train.take(order[: self.rows].sort().values.numpy())
        width = train.features.shape[1]
        counts = torch.zeros(width * self.bins, dtype=torch.int64, device=self.device)
        for chunk in chosen.chunks(device=self.device, only=("features", "logits")):
            counts += torch.bincount(self._states(_influence(chunk)).flatten(), minlength=len(counts))
        self.coverage_ = (precise(counts) / self.enough).clamp(max=1)

    def _states(self, influence: Tensor) -> Tensor:
        """Where the state of each neuron stands in the table of all neurons and bins."""
        inside = ((self.alpha * influence).sigmoid() * self.bins).floor().long().clamp(max=self.bins - 1)
        return inside + self.bins * torch.arange(influence.shape[1], device=influence.device)

    def _score(self, batch: Activations) -> Tensor:
        return self._uncovered(_influence(batch))

    def _uncovered(self, influence: Tensor) -> Tensor:
        return -self.coverage_[self._states(influence)].mean(dim=1)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All candidates from the same gradients."""
        trials = [clone(self).set_params(**candidate).to(self.device).fit(train, val) for candidate in candidates]

        def columns(chunk: Activations) -> Tensor:
            influence = _influence(chunk)
            return torch.stack([trial._uncovered(influence) for trial in trials], dim=1)

        for part in judged:
            self._check(part)
        yield from column_by_column(judged, columns, self.device)


def _influence(batch: Activations) -> Tensor:
    """Each feature times the gradient of the divergence from uniform; rounding would move states between bins."""
    assert batch.head is not None, "checked before"
    weight = precise(batch.head.weight.to(batch.features.device))
    excess = precise(batch.logits).softmax(dim=1) - 1 / batch.logits.shape[1]
    return precise(batch.features) * (excess @ weight)
