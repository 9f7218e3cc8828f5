"""Resized crop: a random part of the whole picture, before it is cut to the network's size."""

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn.functional import grid_sample

from oodscope.training.augment.base import Augmentation, Placement, Unchanged

TRIES = 10
"""Boxes drawn before the largest one in the middle is taken."""


class ResizedCrop(Augmentation):
    r"""A box of a random share of the area and a random shape, resized to the network's input; then a mirror.

    The share is uniform on ``area``, the logarithm of width over height uniform on that of ``shape``; of ten such boxes
    the first that fits is taken, otherwise the largest in the middle. The standard view of ImageNet training (Szegedy
    et al., "Going Deeper with Convolutions", CVPR 2015). Pictures that are larger than the input are cut whole, while
    they are decoded, from random numbers by seed, epoch and row; pictures of its size are cut on the device.

    Parameters
    ----------
    area : least and greatest share of the picture.
    shape : least and greatest width over height.
    flip : mirror left and right with probability one half.
    """

    kind: ClassVar[str] = "resized_crop"
    before_crop: ClassVar[bool] = True

    area: tuple[float, float] = (0.08, 1.0)
    shape: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = True

    def placed(self, place: Placement) -> Augmentation:
        return Unchanged() if place.cut else self

    def cut(self, image: Image.Image, size: int, generator: torch.Generator) -> NDArray[np.uint8]:
        """The part of one picture that the network sees, ``[size, size, C]``."""
        chance = torch.rand(4 * TRIES + 1, generator=generator)
        top, left, height, width = self._boxes(chance[:-1].view(1, 4, TRIES), image.height, image.width)
        corners = [round(float(value)) for value in (left, top, left + width, top + height)]
        part = image.crop((corners[0], corners[1], corners[2], corners[3]))
        part = part.resize((size, size), Image.Resampling.BILINEAR)
        if self.flip and float(chance[-1]) < 0.5:
            part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.asarray(part)
        return pixels[:, :, None] if pixels.ndim == 2 else pixels

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        count, _, height, width = pixels.shape
        chance = torch.rand(count, 4 * TRIES + 1, generator=generator, device=generator.device).to(pixels.device)
        boxes = self._boxes(chance[:, :-1].view(count, 4, TRIES), height, width)
        top, left, tall, wide = (each.view(-1, 1, 1) for each in boxes)
        across = (torch.arange(width, device=pixels.device) + 0.5) / width
        down = (torch.arange(height, device=pixels.device) + 0.5) / height
        mirrored = (chance[:, -1] < 0.5).view(-1, 1, 1) & self.flip
        x = left + wide * torch.where(mirrored, 1 - across, across)
        y = (top + tall * down.view(1, -1, 1)).expand(-1, -1, width)
        grid = torch.stack([2 * x.expand(-1, height, -1) / width - 1, 2 * y / height - 1], dim=3)
        cut = grid_sample(pixels.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
        return cut.round().to(torch.uint8)

    def _boxes(self, chance: Tensor, height: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Top, left, height and width of a box for each row of ``chance`` ``[B, 4, TRIES]``, in whole pixels."""
        low, high = (math.log(each) for each in self.shape)
        area = height * width * (self.area[0] + (self.area[1] - self.area[0]) * chance[:, 0])
        shape = torch.exp(low + (high - low) * chance[:, 1])
        wide, tall = (area * shape).sqrt().round(), (area / shape).sqrt().round()
        fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
        first = fits.float().argmax(dim=1, keepdim=True)
        wide, tall = wide.gather(1, first), tall.gather(1, first)
        top = (chance[:, 2].gather(1, first) * (height - tall + 1)).floor()
        left = (chance[:, 3].gather(1, first) * (width - wide + 1)).floor()
        any_fits = fits.any(dim=1, keepdim=True)
        middle = self._middle(height, width)
        found = zip((top, left, tall, wide), middle)
        boxes = [torch.where(any_fits, drawn, float(fixed)).flatten() for drawn, fixed in found]
        return boxes[0], boxes[1], boxes[2], boxes[3]

    def _middle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """The largest box in the middle whose shape is allowed."""
        tall, wide = height, width
        if width / height < self.shape[0]:
            tall = round(width / self.shape[0])
        elif width / height > self.shape[1]:
            wide = round(height * self.shape[1])
        return (height - tall) // 2, (width - wide) // 2, tall, wide
