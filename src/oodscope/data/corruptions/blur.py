"""Blur by lenses: Gaussian, out of focus, zooming."""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.severities import LADDERS, WORST, ZOOMS, Scale, scale_for

_GRID = 8
"""Half the side of the grid that a disk is drawn on, unless its radius is larger."""


def gaussian_blur(x: Tensor, draws: Draws, *, sigma: Tensor) -> Tensor:
    """A Gaussian filter, cut at four deviations; beyond the edge lies its last pixel."""
    largest = max(LADDERS["gaussian_blur"].rungs(scale_for(*x.shape[2:]))["sigma"])
    return separable.blur(x, sigma, largest=largest)


def defocus_blur(x: Tensor, draws: Draws, *, radius: Tensor, alias: Tensor) -> Tensor:
    """Every point becomes a disk, whose rim a small Gaussian filter of deviation ``alias`` softens."""
    grids = torch.where(radius <= _GRID, float(_GRID), radius.ceil()).long()
    blurred = torch.empty_like(x)
    for half in sorted(set(grids.tolist())):
        rows = (grids == half).nonzero().squeeze(1)
        blurred[rows] = _filtered(x[rows], disk(radius[rows], alias[rows], half))
    return blurred


def disk(radius: Tensor, alias: Tensor, half: int) -> Tensor:
    """Kernels ``[N, 2 half + 1, 2 half + 1]``: the pixels within ``radius``, equal weights, rim softened.

    The filter of the rim has 3 taps, 5 on grids larger than the usual, and is cut there however large ``alias``.
    """
    line = torch.arange(-half, half + 1, device=radius.device)
    inside = (line.square()[:, None] + line.square() <= radius.square()[:, None, None]).to(radius.dtype)
    taps = 1 if half <= _GRID else 2
    reach = torch.arange(-taps, taps + 1, device=radius.device)
    weight = torch.exp(-0.5 * (reach / alias.clamp(min=1e-3)[:, None]) ** 2)
    weight = weight / weight.sum(dim=1, keepdim=True)
    soft = radius.new_zeros(len(radius), len(line), len(line))
    place = separable.mirror(torch.arange(len(line), device=radius.device)[:, None] + reach, len(line))
    shape = (len(radius), *place.shape)
    soft.scatter_add_(2, place.expand(shape), weight[:, None].expand(shape))
    return soft @ (inside / inside.sum(dim=(1, 2), keepdim=True)) @ soft.transpose(1, 2)


def _filtered(x: Tensor, kernel: Tensor) -> Tensor:
    """Each image under its own symmetric kernel, through the Fourier domain; beyond the edge it is mirrored."""
    half = kernel.shape[-1] // 2
    places = [separable.mirror(torch.arange(-half, side + half, device=x.device), side) for side in x.shape[2:]]
    padded = x[:, :, places[0][:, None], places[1]]
    size = padded.shape[2:]
    spectrum = torch.fft.rfft2(padded) * torch.fft.rfft2(kernel, s=size)[:, None]
    filtered: Tensor = torch.fft.irfft2(spectrum, s=size)
    return filtered[:, :, 2 * half :, 2 * half :]


def zoom_blur(x: Tensor, draws: Draws, *, rung: Tensor) -> Tensor:
    """The mean of the image and of its magnifications; between two severities, a mixture of both means."""
    shares = _layers(scale_for(*x.shape[2:])).to(x.device)
    lower = rung.floor().clamp(max=WORST - 1).long()
    share = (rung - lower)[:, None]
    weights = (1 - share) * shares[lower] + share * shares[lower + 1]
    total = torch.zeros_like(x)
    for layer in weights.any(dim=0).nonzero().squeeze(1).tolist():
        larger = separable.apply(partial(separable.zoom, x.new_tensor([_factor(layer)])), x)
        total = total + weights[:, layer, None, None, None] * larger
    return total


def _layers(scale: Scale) -> Tensor:
    """The weight of every magnification (columns: 1.00, 1.01, ...) at severity 0 to 5."""
    count = 1 + max(_position(factor) for end, step in ZOOMS[scale] for factor in np.arange(1, end, step))
    shares = torch.zeros(WORST + 1, count, dtype=torch.float64)
    shares[0, 0] = 1.0
    for severity, (end, step) in enumerate(ZOOMS[scale], start=1):
        factors = np.arange(1, end, step)
        for factor in (1.0, *factors):  # the image itself counts beside its magnification by 1
            shares[severity, _position(factor)] += 1 / (len(factors) + 1)
    return shares


def _position(factor: float) -> int:
    return round((factor - 1) / 0.01)


def _factor(position: int) -> float:
    # as NumPy's arange counts: at 1.25 the last bit decides whether 26 pixels become 32 or 33
    return 1 + position * ((1 + 0.01) - 1)
