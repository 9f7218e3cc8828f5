"""Perceptual distance at equal length: what kind of change a shift is, not how large it is."""

import numpy as np
import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.generation.distances.perceptual import Perceptual

PER_PIXEL = 50 / (3 * 224 * 224) ** 0.5
"""The length of 50 that the paper gives all differences of its images of 224 pixels, per value of a pixel."""

BATCH = 256


def perceived(images: ImageSet, originals: ImageSet, perceptual: Perceptual, device: torch.device) -> float:
    r"""The mean distance between originals and their shifted versions, all shifted by the same length.

    .. math:: \frac1n\sum_i d\Bigl(x_i,\ x_i + r\,\frac{x'_i - x_i}{\lVert x'_i - x_i\rVert_2}\Bigr), \qquad
              r = 0.129\,\sqrt{CHW}

    At one length, noise and a structured change differ in how far features move. Pairs that do not differ are left out.

    Parameters
    ----------
    images, originals : row i of one was made from row i of the other.
    """
    if len(images) != len(originals):
        raise DataError(f"{images.name}: {len(images)} images, but {len(originals)} originals; rows must match")
    total, count = torch.zeros((), dtype=torch.float64, device=device), torch.zeros((), device=device)
    for start in range(0, len(images), BATCH):
        rows = np.arange(start, min(start + BATCH, len(images)))
        before, after = (_pixels(each, rows).to(device) for each in (originals, images))
        if before.shape != after.shape:
            raise DataError(f"{images.name}: images and originals differ in size or colours")
        change = after - before
        length = change.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        radius = PER_PIXEL * change[0].numel() ** 0.5
        with torch.no_grad():
            distance = perceptual(before, before + radius * change / length.clamp_min(1e-12))
        moved = length.flatten() > 0
        total += torch.where(moved, distance.double(), 0.0).sum()
        count += moved.sum()
    if not float(count):
        raise DataError(f"{images.name}: no image differs from its original")
    return float(total / count)


def _pixels(images: ImageSet, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
    pictures = [np.atleast_3d(picture) for picture in images.images(rows)]
    if len({picture.shape for picture in pictures}) > 1:
        raise DataError(f"{images.name}: images differ in size; a perceptual distance compares images of one size")
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255
