"""Principal spaces around the point that the head maps to zero, and what lies outside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import block_rows
from oodscope.base.errors import DetectorError
from oodscope.detectors.math.numbers import on_host, precise, product


def eigenbasis(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, largest first, and the matching orthonormal columns.

    By LAPACK through scipy: torch's own routine is a hundred times slower at these sizes when it runs
    with several threads. Divide and conquer (``evd``) is the fastest of its drivers where all vectors are wanted.
    """
    values, vectors = scipy.linalg.eigh(symmetric.double().cpu().numpy(), driver="evd")
    return torch.from_numpy(values[::-1].copy()), torch.from_numpy(vectors[:, ::-1].copy())


def whitening(covariance: Tensor) -> Tensor:
    r"""A matrix :math:`A` with :math:`A A^\top = \Sigma^+`: in its coordinates Mahalanobis is Euclidean.

    Directions without variance, as after a dead unit, are left out: that is what the pseudo-inverse does.
    """
    values, vectors = eigenbasis(covariance)
    floor = values.max().clamp(min=0) * len(values) * torch.finfo(torch.float64).eps
    kept = values > floor
    return vectors[:, kept] / values[kept].sqrt()


def principal_dim(detector: str, dim: int | None, width: int) -> int:
    """``dim`` if it leaves a residual space; ViM's rule where there is none given."""
    rule = 1000 if width >= 2048 else 512 if width >= 768 else max(1, width // 2)
    chosen = rule if dim is None else dim
    if not 0 < chosen < width:
        raise DetectorError(
            f"{detector}: features are {width}-dimensional, dim={chosen} leaves no residual space. "
            f"Use dim < {width} (rule of the paper: {rule})"
        )
    return chosen


def narrower(points: list[dict[str, Any]], train: Activations) -> list[dict[str, Any]]:
    """The points of a grid whose ``dim`` is below the width of the features; the detector's own rule if none is."""
    width = train.shape("features")[1]
    return [point for point in points if point["dim"] < width] or [{"dim": None}]


def residual_space(train: Activations, device: torch.device, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""What ``lengths_beyond`` needs of the space outside the ``dim`` principal axes, on ``device``.

    The axes are those of :math:`\frac1N\sum_i(h_i-o)(h_i-o)^\top` around the origin :math:`o=-W^{+}b`, largest
    first, decomposed once for all detectors that ask for the same training images and the same head. Returned are
    the training mean :math:`\mu`, the axes :math:`R` after the first ``dim`` and :math:`R^\top(\mu-o)`.
    """
    assert train.head is not None, "checked before fitting"
    weight, bias = train.head.weight.double().cpu(), train.head.bias.double().cpu()
    # the shortest solution is the pseudo-inverse's, at half its price
    origin = -torch.from_numpy(np.linalg.lstsq(weight.numpy(), bias.numpy(), rcond=None)[0])
    moments = train.moments(device)
    key = ("axes about", tuple(origin.tolist()))
    axes = moments.derived(key, lambda: eigenbasis(moments.second_about(origin))[1])[:, dim:]
    # a float32 number, so that the same centre serves in either precision
    centre = moments.mean.float().double()
    offset = (centre - origin) @ axes
    return precise(centre.to(device)), precise(axes.to(device)), precise(offset.to(device))


def lengths_beyond(features: Tensor, space: tuple[Tensor, Tensor, Tensor], skip: Sequence[int]) -> Tensor:
    r"""Length of :math:`R^\top(h-o)` without its first few entries, one column for each number to ``skip``.

    As :math:`R^\top(h-\mu)+R^\top(\mu-o)`, in the precision of the ``space``: what is rounded is of the size of
    the features' spread, however far they all lie from the origin.
    """
    centre, axes, offset = space
    if not on_host(features):
        return _norms((features.to(axes.dtype) - centre) @ axes + offset, skip)
    lengths = torch.empty(len(features), len(skip), dtype=torch.float64)
    rows = block_rows(features)
    for start in range(0, len(features), rows):
        along = product(features[start : start + rows].to(axes.dtype) - centre, axes)
        lengths[start : start + rows] = _norms(along.add_(offset), skip)
    return lengths


def _norms(along: Tensor, skip: Sequence[int]) -> Tensor:
    kind = precise(along[:0]).dtype
    return torch.stack([torch.linalg.vector_norm(along[:, some:], dim=1, dtype=kind) for some in skip], dim=1)
