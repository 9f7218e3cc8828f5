"""NECO: the share of a feature that lies in the principal space of the training features."""

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
from oodscope.detectors.math.principal import eigenbasis, narrower

SHARE = 0.9
"""Of the variance, in the principal space where no dimension is given."""


class NECO(Detector):
    r"""After neural collapse, classes span few directions; outliers keep more of their length outside them.

    .. math:: s(x) = -\frac{\lVert P^\top\tilde h\rVert}{\lVert\tilde h\rVert}\;[\,\cdot\max_c z_c\,], \qquad
              \tilde h = (h-\mu)/\sigma

    :math:`P` holds the first ``dim`` principal axes of the standardised training features. A feature that equals
    the mean has the share 0. Features that never vary are centred but not scaled.

    Parameters
    ----------
    dim : of the principal space. The authors choose it for each network; ``None`` takes as many axes as hold
        90 % of the training variance.
    times_logit : multiply the share by the largest logit, as the authors do for transformers; for ResNets they
        do not.
    """

    name = "neco"
    paper = Paper("NECO: NEural Collapse Based Out-of-distribution Detection", "Ben Ammar et al.", "ICLR 2024")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN
    cost = Cost.MOMENTS
    grid = {"dim": (10, 50, 100, 200, 300)}

    def __init__(self, dim: int | None = None, times_logit: bool = False) -> None:
        self.dim = dim
        self.times_logit = times_logit

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        moments = train.moments(self.device)
        spread = moments.covariance.diagonal().clamp(min=0).sqrt()
        scale = torch.where(spread > 0, spread, 1.0)
        variances, axes = moments.derived(
            "correlation", lambda: eigenbasis(moments.covariance / torch.outer(scale, scale))
        )
        reached = variances.clamp(min=0).cumsum(0) >= SHARE * variances.clamp(min=0).sum()
        dim = 1 + int((~reached).sum()) if self.dim is None else self.dim
        if not 0 < dim <= len(axes):
            raise DetectorError(f"neco: dim must lie in 1..{len(axes)}, the number of features, not {dim}")
        self.mean_, self.scale_ = precise(moments.mean.to(self.device)), precise(scale.to(self.device))
        self.axes_ = precise(axes[:, :dim].to(self.device))

    def _score(self, batch: Activations) -> Tensor:
        return self._shares(batch, [self.axes_.shape[1]])[:, 0]

    def _shares(self, batch: Activations, dims: Sequence[int]) -> Tensor:
        features = (precise(batch.features) - self.mean_) / self.scale_
        squares = (features @ self.axes_).square()
        inside = torch.stack([squares[:, :dim].sum(dim=1).sqrt() for dim in dims], dim=1)
        lengths = torch.linalg.vector_norm(features, dim=1, keepdim=True)
        shares = torch.where(lengths > 0, inside / lengths, 0.0)
        return -shares * precise(batch.logits).amax(dim=1, keepdim=True) if self.times_logit else -shares

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        return narrower(super().search_space(train), train)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All dimensions from one projection."""
        if any(candidate["dim"] is None for candidate in candidates):
            yield from super().score_grid(candidates, train, val, judged)
            return
        dims = [int(candidate["dim"]) for candidate in candidates]
        widest = clone(self).set_params(dim=max(dims)).to(self.device).fit(train, val)
        yield from column_by_column(judged, lambda chunk: widest._shares(chunk, dims), self.device)
