"""Noise pictures: enough variety to distinguish linear layers, without any data."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

COUNT = 4
_CELLS = 4

SIDES = (32, 28, 64, 96, 224, 256, 299, 384, 512)
"""Sides to try on a network that does not say which it takes."""


def noise_images(side: int, channels: int) -> list[NDArray[np.uint8]]:
    """``COUNT`` square uint8 images ``[side, side, channels]``, always the same.

    A mosaic of large cells under pixel noise: after global pooling, pure pixel noise is the same grey
    for every image, and the logits would hardly differ.
    """
    rng = np.random.default_rng(0)
    mosaic = rng.integers(0, 256, (COUNT, _CELLS, _CELLS, channels))
    index = np.arange(side) * _CELLS // side
    grain = rng.integers(0, 256, (COUNT, side, side, channels))
    return list(((mosaic[:, index][:, :, index] + grain) // 2).astype(np.uint8))


def noise_like(batch: Tensor) -> Tensor:
    """``COUNT`` noise inputs of the shape, mean and deviation of a batch that a user brought as tensors."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn((COUNT, *batch.shape[1:]), generator=generator)
    contrast = torch.linspace(0.5, 2.0, COUNT).view(-1, *[1] * (batch.ndim - 1))
    values = batch.detach().float().cpu()
    mean, deviation = float(values.mean()), float(values.std(correction=0))
    if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0):
        mean, deviation = 0.0, 1.0
    return noise * contrast * deviation + mean
