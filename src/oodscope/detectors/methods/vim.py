"""ViM: residual off the principal space as one more logit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.numbers import column_by_column, precise
from oodscope.detectors.math.principal import lengths_beyond, narrower, principal_dim, residual_space


class ViM(Detector):
    r"""Length of the feature outside the principal space, scaled to the logits, minus their energy.

    .. math:: s(x) = \alpha\,\lVert R^\top (h-o)\rVert - \log\sum_c e^{z_c}, \qquad
              o = -W^{+}b, \quad
              \alpha = \frac{\sum_i \max_c z_c(x_i)}{\sum_i \lVert R^\top(h_i-o)\rVert}

    :math:`R` holds the eigenvectors of :math:`\frac1N\sum_i(h_i-o)(h_i-o)^\top` after the first ``dim``.

    Parameters
    ----------
    dim : of the principal space. ``None`` takes the paper's rule: 1000 from 2,048 features on, 512 from
        768 on, half of them below.
    """

    name = "vim"
    paper = Paper("ViM: Out-Of-Distribution with Virtual-logit Matching", "Wang et al.", "CVPR 2022")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.MOMENTS
    grid = {"dim": (256, 1000)}

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        dim = principal_dim(self.name, self.dim, train.features.shape[1])
        self.alpha_ = self._learn(train, [dim])[0]

    def _learn(self, train: Activations, dims: Sequence[int]) -> list[float]:
        """Keep the axes beyond the smallest of ``dims``, and find the alpha of each."""
        self.centre_, self.residual_, self.offset_ = space = residual_space(train, self.device, min(dims))
        # float32 is enough for a mean over all training images, and twice as fast
        quick, skip = (space[0].float(), space[1].float(), space[2].float()), [dim - min(dims) for dim in dims]
        tops, lengths = 0.0, [0.0] * len(dims)
        for chunk in train.chunks(device=self.device, only=("logits", "features")):
            tops += float(precise(chunk.logits.amax(dim=1)).sum())
            sums = lengths_beyond(chunk.features, quick, skip).sum(dim=0).tolist()
            lengths = [length + part for length, part in zip(lengths, sums)]
        return [tops / length if length > 0 else 0.0 for length in lengths]

    def _score(self, batch: Activations) -> Tensor:
        return self._scores(batch, [0], [self.alpha_])[:, 0]

    def _scores(self, batch: Activations, dims: Sequence[int], alphas: Sequence[float]) -> Tensor:
        residuals, energy = self._residuals(batch, dims), precise(batch.logits).logsumexp(dim=1)
        return torch.stack([alpha * residuals[:, i] - energy for i, alpha in enumerate(alphas)], dim=1)

    def _residuals(self, batch: Activations, dims: Sequence[int]) -> Tensor:
        space = (self.centre_, self.residual_, self.offset_)
        return lengths_beyond(batch.features, space, [dim - min(dims) for dim in dims])

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
        trial = clone(self).to(self.device)
        trial._check(train, fitting=True)
        alphas = trial._learn(train, dims)
        yield from column_by_column(judged, lambda chunk: trial._scores(chunk, dims, alphas), self.device)
