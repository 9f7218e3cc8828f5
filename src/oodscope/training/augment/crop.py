"""Random crop and mirror, for a whole batch at once."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad as pad_edges

from oodscope.training.augment.base import Augmentation


class Augment(Augmentation):
    """Pad with black, crop back to size at a random place, mirror every second image.

    Parameters
    ----------
    pad : pixels added on each side before the crop; 0 leaves the image where it is.
    flip : mirror left and right with probability one half. Turn it off where the mirror image means
        something else: letters, digits, road signs.
    """

    kind: ClassVar[str] = "crop"

    pad: int = Field(default=4, ge=0)
    flip: bool = True

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """A new batch of the same shape; each image draws its own place and side."""
        if self.pad:
            pixels = _random_crop(pixels, self.pad, generator)
        if self.flip:
            mirrored = torch.rand(len(pixels), generator=generator, device=generator.device).to(pixels.device) < 0.5
            pixels = torch.where(mirrored[:, None, None, None], pixels.flip(3), pixels)
        return pixels


def _random_crop(pixels: Tensor, pad: int, generator: torch.Generator) -> Tensor:
    count, _, height, width = pixels.shape
    top, left = torch.randint(2 * pad + 1, (2, count), generator=generator, device=generator.device).to(pixels.device)
    windows = pad_edges(pixels, (pad, pad, pad, pad)).unfold(2, height, 1).unfold(3, width, 1)
    return windows[torch.arange(count, device=pixels.device), :, top, left]
