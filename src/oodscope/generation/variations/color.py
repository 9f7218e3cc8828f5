"""Color: brightness, contrast, saturation and hue, each image by its own numbers."""

import torch
from torch import Tensor

from oodscope.generation.variations.base import Range, Ranged, computed_in
from oodscope.models.classifier.clip import clip

_GREY = (0.2989, 0.587, 0.114)
_TINY = 1e-8


class Color(Ranged):
    r"""Brightness, contrast, saturation and hue, in this order, pixels cut to [0, 1] after each.

    The first three mix the image with black, with the mean of its grey, and with its grey,

    .. math:: x \leftarrow f x + (1 - f)\, m,

    with factors 0.5 to 1.5, 0.5 to 1.5 and 0 to 2; the last turns the hue of HSV by up to half a turn either way
    (Yoon et al., NeurIPS 2022). torchvision's ``adjust_*`` functions do the same with one number for all images. An
    image of one channel has neither saturation nor hue, and these two leave it alone.
    """

    name = "color"

    @property
    def ranges(self) -> tuple[Range, ...]:
        return (
            Range("brightness", 0.5, 1.5),
            Range("contrast", 0.5, 1.5),
            Range("saturation", 0, 2),
            Range("hue (turns)", -0.5, 0.5),
        )

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.5, 0.5, 0.5, 0.5)

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        assert images is not None, "it varies source images"
        pixels = computed_in(images)
        each = self.natural(points.to(pixels.dtype))[:, :, None, None, None]
        brightness, contrast, saturation, turn = each.unbind(1)
        pixels = clip(brightness * pixels, 0, 1)
        pixels = _mixed(pixels, _grey(pixels).mean(dim=(1, 2, 3), keepdim=True), contrast)
        if pixels.shape[1] == 3:
            pixels = _mixed(pixels, _grey(pixels), saturation)
            pixels = turned(pixels, turn)
        return pixels.to(images.dtype)

    def describe(self) -> dict[str, object]:
        return {"name": self.name}


def turned(pixels: Tensor, turn: Tensor) -> Tensor:
    r"""RGB ``[N, 3, H, W]`` with the hue of HSV moved by ``turn``, in turns.

    With :math:`V = \max c`, :math:`\delta = V - \min c` and the hue :math:`h` in sixths of a turn, a channel is
    :math:`\min c + \delta\, w(h)`, where :math:`w` rises, stays and falls in its own third. So value and saturation
    need no way there and back. Where :math:`\delta` is almost nothing the hue means nothing, and its gradient is
    bounded instead of a division by zero.
    """
    red, green, blue = torch.split(pixels, 1, dim=1)
    value = torch.maximum(torch.maximum(red, green), blue)
    least = torch.minimum(torch.minimum(red, green), blue)
    spread = value - least
    unit = spread.clamp(min=_TINY)
    hue = torch.where(
        value == red,
        (green - blue) / unit,
        torch.where(value == green, 2 + (blue - red) / unit, 4 + (red - green) / unit),
    )
    hue = (hue + 6 * turn).remainder(6)
    weights = [(hue - 3).abs() - 1, 2 - (hue - 2).abs(), 2 - (hue - 4).abs()]
    return least + spread * clip(torch.cat(weights, dim=1), 0, 1)


def _grey(pixels: Tensor) -> Tensor:
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = torch.split(pixels, 1, dim=1)
    return _GREY[0] * red + _GREY[1] * green + _GREY[2] * blue


def _mixed(pixels: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return clip(factor * pixels + (1 - factor) * other, 0, 1)
