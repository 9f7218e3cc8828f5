"""Residual: how far a feature lies outside the principal space of the training features."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.numbers import column_by_column
from oodscope.detectors.math.principal import lengths_beyond, narrower, principal_dim, residual_space


class Residual(Detector):
    r"""Length of the feature outside the principal space: ViM without its logits.

    .. math:: s(x) = \lVert R^\top (h-o)\rVert, \qquad o = -W^{+}b

    :math:`R` holds the eigenvectors of :math:`\frac1N\sum_i(h_i-o)(h_i-o)^\top` after the first ``dim``, over the
    training images as in the paper. (OpenOOD takes validation images and ``dim`` = 512, which leaves nothing of
    512 features.)

    Parameters
    ----------
    dim : of the principal space. ``None`` takes the paper's rule: 1000 from 2,048 features on, 512 from
        768 on, half of them below.
    """

    name = "residual"
    paper = Paper("ViM: Out-Of-Distribution with Virtual-logit Matching", "Wang et al.", "CVPR 2022")
    needs = Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.MOMENTS
    grid = {"dim": (256, 1000)}

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        dim = principal_dim(self.name, self.dim, train.features.shape[1])
        self.centre_, self.residual_, self.offset_ = residual_space(train, self.device, dim)

    def _score(self, batch: Activations) -> Tensor:
        return self._lengths(batch, [0])[:, 0]

    def _lengths(self, batch: Activations, skip: Sequence[int]) -> Tensor:
        return lengths_beyond(batch.features, (self.centre_, self.residual_, self.offset_), skip)

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
        dims = [principal_dim(self.name, candidate["dim"], train.features.shape[1]) for candidate in candidates]
        widest = clone(self).set_params(dim=min(dims)).to(self.device).fit(train, val)
        skip = [dim - min(dims) for dim in dims]
        yield from column_by_column(judged, lambda chunk: widest._lengths(chunk, skip), self.device)
