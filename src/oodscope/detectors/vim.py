"""ViM: residual off the principal space as one more logit."""

from typing import Any

import torch
from torch import Tensor

from oodscope.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.precision import precise
from oodscope.detectors.spectrum import eigenbasis


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
        assert train.head is not None, "checked before fitting"
        dim = _rule(train.head.dim) if self.dim is None else self.dim
        if not 0 < dim < train.head.dim:
            raise DetectorError(
                f"vim: features are {train.head.dim}-dimensional, dim={dim} leaves no residual space. "
                f"Use dim < {train.head.dim} (rule of the paper: {_rule(train.head.dim)})"
            )
        weight, bias = train.head.weight.double().cpu(), train.head.bias.double().cpu()
        origin = -torch.linalg.pinv(weight) @ bias
        _, vectors = eigenbasis(train.moments(self.device).second_about(origin))
        self.origin_ = precise(origin.to(self.device))
        self.residual_ = precise(vectors[:, dim:].to(self.device))
        tops = lengths = 0.0
        for chunk in train.chunks(device=self.device, only=("logits", "features")):
            tops += float(precise(chunk.logits).amax(dim=1).sum())
            lengths += float(self._residual(chunk).sum())
        self.alpha_ = tops / lengths if lengths > 0 else 0.0

    def _score(self, batch: Activations) -> Tensor:
        return self.alpha_ * self._residual(batch) - precise(batch.logits).logsumexp(dim=1)

    def _residual(self, batch: Activations) -> Tensor:
        outside = (precise(batch.features) - self.origin_) @ self.residual_
        lengths: Tensor = torch.linalg.vector_norm(outside, dim=1)
        return lengths

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        width = train.features.shape[1]
        return [point for point in super().search_space(train) if point["dim"] < width] or [{"dim": None}]


def _rule(width: int) -> int:
    if width >= 2048:
        return 1000
    return 512 if width >= 768 else max(1, width // 2)
