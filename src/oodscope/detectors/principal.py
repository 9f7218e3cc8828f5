"""Principal spaces around the point that the head maps to zero, and what lies outside them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.precision import precise
from oodscope.detectors.spectrum import eigenbasis


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


def principal_axes(train: Activations, device: torch.device) -> tuple[Tensor, Tensor]:
    r"""The origin :math:`o=-W^{+}b` and the axes of :math:`\frac1N\sum_i(h_i-o)(h_i-o)^\top`, largest first.

    Decomposed once for all detectors that ask for the same training images and the same head.
    """
    assert train.head is not None, "checked before fitting"
    weight, bias = train.head.weight.double().cpu(), train.head.bias.double().cpu()
    origin = -torch.linalg.pinv(weight) @ bias
    moments = train.moments(device)
    key = ("axes about", tuple(origin.tolist()))
    return origin, moments.derived(key, lambda: eigenbasis(moments.second_about(origin))[1])


def lengths_beyond(features: Tensor, origin: Tensor, axes: Tensor, skip: Sequence[int]) -> Tensor:
    """Length of each row along the axes after the first few, one column for each number to ``skip``."""
    squares = ((precise(features) - origin) @ axes).square()
    return torch.stack([squares[:, some:].sum(dim=1).sqrt() for some in skip], dim=1)
