"""Blend: a little of an in-distribution image, shining through."""

from copy import copy

import torch
from torch import Tensor

from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.generation.variations.base import Range, Ranged, computed_in


class Blend(Ranged):
    r"""A mixture with an in-distribution image at low weight.

    .. math:: g(w, k; x) = (1 - w)\, x + w\, p_k, \qquad 0 \le w \le w_{\max}

    How much of a familiar picture must shine through before a detector takes the outlier for one of its own. The second
    coordinate chooses the partner, :math:`k = \lfloor u P \rfloor`; gradients reach the weight only.

    Parameters
    ----------
    partners : ``[P, C, H, W]`` in [0, 1]: in-distribution images, best of the training or validation set.
    heaviest : the largest weight; at 0.3 the outlier is still visible.
    """

    name = "blend"

    def __init__(self, partners: Tensor, heaviest: float = 0.3) -> None:
        if not 0 < heaviest <= 1:
            raise OodscopeError(f"blend: heaviest is a weight above 0 and up to 1, not {heaviest:g}")
        if partners.dim() != 4 or not len(partners) or not partners.is_floating_point():
            raise DataError(
                f"blend: partners must be floating point images [P, C, H, W], not {list(partners.shape)} "
                f"of {partners.dtype}"
            )
        if not bool(((partners >= 0) & (partners <= 1)).all()):
            raise DataError("blend: partners must lie in [0, 1]; give them before they are normalised")
        self.partners = partners
        self.heaviest = heaviest
        self._digest = fingerprint(partners.detach().float().cpu().numpy())

    @property
    def ranges(self) -> tuple[Range, ...]:
        return (Range("weight", 0, self.heaviest), Range("partner", 0, len(self.partners)))

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.0, 0.5)

    def natural(self, points: Tensor) -> Tensor:
        """As for every range, with the partner as its place among the partners: 0, 1, ..."""
        found = super().natural(points)
        chosen = found[:, 1].floor().clamp(max=len(self.partners) - 1)
        return torch.stack([found[:, 0], chosen], dim=1)

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        assert images is not None, "it varies source images"
        if images.shape[1:] != self.partners.shape[1:]:
            raise DataError(
                f"blend: the partners are {list(self.partners.shape[1:])}, the images {list(images.shape[1:])}"
            )
        pixels = computed_in(images)
        weight, chosen = self.natural(points).unbind(1)
        partner = self.partners.index_select(0, chosen.long()).to(pixels.dtype)
        return torch.lerp(pixels, partner, weight.to(pixels.dtype)[:, None, None, None]).to(images.dtype)

    def to(self, device: torch.device | str) -> "Blend":
        moved = copy(self)
        moved.partners = self.partners.to(device)
        return moved

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "partners": self._digest, "count": len(self.partners), "heaviest": self.heaviest}
