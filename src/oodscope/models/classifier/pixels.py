"""Pixels: how a network's preprocessing treats the value of a pixel, read off the preprocessing itself."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.models.classifier.classifier import Classifier

_SIDE = 64
_LEVELS = (51, 128, 204)
_COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


@dataclass(frozen=True)
class PixelScale:
    """The map from pixels in [0, 1] to the network's input, ``scale * pixel + offset`` per channel.

    For images that have the size that the network sees, this is all that preprocessing does; unlike it, the map runs
    on the device and has a gradient.

    Parameters
    ----------
    scale, offset : ``[C, 1, 1]``.
    size : height and width that the network sees.
    """

    scale: Tensor
    offset: Tensor
    size: tuple[int, int]

    def __call__(self, images: Tensor) -> Tensor:
        """The network's input from float images ``[N, C, H, W]`` in [0, 1]."""
        expected = (len(self.scale), *self.size)
        if images.ndim != 4 or tuple(images.shape[1:]) != expected or not images.is_floating_point():
            raise ModelError(
                f"tensors must be float images in [0, 1] of shape [N, {', '.join(map(str, expected))}], as the network "
                f"sees them; got {images.dtype} {list(images.shape)}. Arrays, pictures and paths are resized for you"
            )
        return images.float() * self.scale + self.offset


_KNOWN: "WeakKeyDictionary[Classifier, PixelScale]" = WeakKeyDictionary()
"""A classifier's preprocessing stays what it is."""


def pixel_scale(classifier: Classifier) -> PixelScale:
    """What a classifier's preprocessing does to pixel values: asked of black and white, proved on other colours."""
    if classifier not in _KNOWN:
        _KNOWN[classifier] = _proved(classifier)
    return _KNOWN[classifier]


def _proved(classifier: Classifier) -> PixelScale:
    levels = [(level, level, level) for level in (0, 255, *_LEVELS)]
    shown = _flat(classifier, levels)
    offset = shown[0].mean(dim=(1, 2), keepdim=True)
    scale = shown[1].mean(dim=(1, 2), keepdim=True) - offset
    colours = list(levels) + (list(_COLOURS) if len(scale) == 3 else [])
    expected = torch.tensor(colours, dtype=torch.float32)[:, : len(scale), None, None] / 255 * scale + offset
    seen = _flat(classifier, colours)
    if not torch.allclose(seen, expected.expand_as(seen), rtol=0, atol=1e-4 * float(scale.abs().max())):
        raise ModelError(
            f"{classifier.name}: its preprocessing does more than scale and shift pixels, so tensors of pixels "
            "cannot be given; pass arrays, pictures or paths"
        )
    device = classifier.device
    return PixelScale(scale.to(device), offset.to(device), (int(seen.shape[2]), int(seen.shape[3])))


def _flat(classifier: Classifier, colours: list[tuple[int, int, int]]) -> Tensor:
    return classifier.prepare([np.full((_SIDE, _SIDE, 3), colour, dtype=np.uint8) for colour in colours])
