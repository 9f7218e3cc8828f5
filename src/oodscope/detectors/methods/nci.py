"""NCI: how close the feature points to the weight of its class, and how long it is."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.numbers import precise, winners


class NCI(Detector):
    r"""Under neural collapse, centred features of known images point to their class weight and are long.

    .. math:: s(x) = -\frac{w_{\hat y}^\top(h-\mu)}{\lVert h-\mu\rVert} - \alpha\,\lVert h\rVert_1

    with :math:`\mu` the mean training feature. The first term is zero for a feature that equals the mean.

    Parameters
    ----------
    alpha : weight of the length; OpenOOD's default is 1e-4, its search goes up to 0.1.
    """

    name = "nci"
    paper = Paper("Detecting Out-of-Distribution through the Lens of Neural Collapse", "Liu & Qin", "CVPR 2025")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.MOMENTS
    grid = {"alpha": (1e-4, 1e-3, 1e-2, 1e-1)}

    def __init__(self, alpha: float = 1e-4) -> None:
        self.alpha = alpha

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        if self.alpha < 0:
            raise DetectorError(f"nci: alpha must not be negative, not {self.alpha}")
        self.mean_ = precise(train.mean_feature(self.device).to(self.device))
        self.weight_ = train.head.weight.to(self.device)

    def _score(self, batch: Activations) -> Tensor:
        proximity, length = self._terms(batch).unbind(dim=1)
        return -proximity - self.alpha * length

    def _terms(self, batch: Activations) -> Tensor:
        centred = batch.features - self.mean_.to(batch.features)
        towards = self.weight_.index_select(0, winners(batch.logits)).mul_(centred).sum(dim=1)
        length = precise(torch.linalg.vector_norm(centred, dim=1))
        proximity = precise(towards) / length.clamp(min=torch.finfo(length.dtype).tiny)
        return torch.stack([proximity, precise(batch.features.abs().sum(dim=1))], dim=1)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All alphas from the same two terms."""
        fitted = clone(self).to(self.device).fit(train, val)
        for part in judged:
            self._check(part)
        terms = [part.per_row(fitted._terms, device=self.device) for part in judged]
        for candidate in candidates:
            yield [-part[:, 0] - candidate["alpha"] * part[:, 1] for part in terms]
