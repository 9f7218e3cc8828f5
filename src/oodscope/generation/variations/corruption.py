"""Corruption: noise, blur, weather and digital damage, of any strength."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.data.addressed import content_keys
from oodscope.data.corruptions.batch import STEADY, corrupt_steadily
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.corruptions.severities import WORST
from oodscope.generation.variations.base import Range, Ranged

_DEFAULT = ("gaussian_noise", "gaussian_blur", "fog", "brightness", "contrast", "pixelate")


class Corruption(Ranged):
    r"""A type of damage and its severity, from 0 (none) to 5, after Hendrycks & Dietterich (ICLR 2019).

    With one type the severity is the only coordinate. With :math:`T` types another one stands before it, and
    :math:`\lfloor u T \rfloor` is the type. Every step then costs all types, because only the device knows which image
    needs which. Grain and clouds are drawn by an address made of the image's content, so this is a function: one image
    and one point give one result, in every batch. No gradients are promised: types jump, and pixelate rounds.

    Parameters
    ----------
    types : of corruptions, from those that never wait for the device; by default six of all four families.
    seed : of grain and clouds.
    """

    name = "corruption"
    differentiable = False

    def __init__(self, types: Sequence[str] = _DEFAULT, seed: int = 0) -> None:
        self.types = tuple(types)
        if not self.types:
            raise OodscopeError(f"corruption needs at least one type of: {', '.join(STEADY)}")
        for each in self.types:
            CORRUPTIONS[each]  # an unknown name ends here
            if each not in STEADY:
                raise OodscopeError(
                    f"corruption {each!r} would stop the device at every step of a search; these do not: "
                    f"{', '.join(STEADY)}"
                )
        self.seed = seed
        if len(self.types) == 1:
            self.name = f"corruption:{self.types[0]}"

    @property
    def ranges(self) -> tuple[Range, ...]:
        severity = Range("severity", 0, WORST)
        return (severity,) if len(self.types) == 1 else (Range("type", 0, len(self.types)), severity)

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.0,) if len(self.types) == 1 else (0.5, 0.0)

    def natural(self, points: Tensor) -> Tensor:
        """As for every range, with the type as its place in ``types``: 0, 1, ..."""
        found = super().natural(points)
        if len(self.types) == 1:
            return found
        chosen = found[:, 0].floor().clamp(max=len(self.types) - 1)
        return torch.stack([chosen, found[:, 1]], dim=1)

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        assert images is not None, "it varies source images"
        found = self.natural(points)
        chosen, severity = found[:, 0], found[:, -1]
        keys = content_keys(images)
        varied = corrupt_steadily(images, self.types[0], severity, keys, self.seed)
        for number, each in enumerate(self.types[1:], start=1):
            corrupted = corrupt_steadily(images, each, severity, keys, self.seed)
            varied = torch.where((chosen == number)[:, None, None, None], corrupted, varied)
        return varied

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "types": list(self.types), "seed": self.seed}
