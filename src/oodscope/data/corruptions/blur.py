"""Blur: Gaussian, out of focus, zooming, behind glass, in motion."""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.levels import cut
from oodscope.data.corruptions.severities import LADDERS, WORST, ZOOMS, Scale, scale_for

_NOTHING = 1e-11
"""Weights below this move no level."""


def motion_blur(x: Tensor, draws: Draws, *, radius: Tensor, sigma: Tensor) -> Tensor:
    """A camera that moves at an angle between -45 and 45 degrees."""
    angle = 90 * draws.uniform("angle") - 45
    return smeared(x, radius, sigma, angle)


def smeared(x: Tensor, radius: Tensor, sigma: Tensor, angle: Tensor) -> Tensor:
    r"""The tail of ``x [N, C, H, W]`` along ``angle`` (degrees, clockwise from the right).

    .. math:: y(p) = \sum_{i=0}^{2 \lceil r \rceil} w_i\, x(p + o_i), \qquad w_i \propto e^{-i^2 / 2\sigma^2}

    with :math:`o_i` the pixel nearest to :math:`i (\cos\theta, \sin\theta)`. One-sided, hence the image also moves a
    little. Beyond the edge lies its last pixel.

    Parameters
    ----------
    radius : half the number of taps.
    sigma : of the tail, in pixels; 0 leaves the image as it is.
    """
    width = 2 * radius.ceil() + 1
    tap = torch.arange(int(width.max()), device=x.device)
    weight = torch.exp(-0.5 * (tap / sigma.clamp(min=1e-9)[:, None]) ** 2) * (tap < width[:, None])
    weight = weight / weight.sum(dim=1, keepdim=True)
    turn = torch.deg2rad(angle)[:, None]
    right, down = ((tap * part - 0.5).ceil().long() for part in (turn.cos(), turn.sin()))
    height, length = x.shape[2:]
    rows, columns = (torch.arange(side, device=x.device) for side in (height, length))
    pixels = x.flatten(2)
    total = torch.zeros_like(x)
    for i in (weight > _NOTHING).any(dim=0).nonzero().squeeze(1).tolist():
        row = (rows + down[:, i, None]).clamp(0, height - 1)
        column = (columns + right[:, i, None]).clamp(0, length - 1)
        place = (row[:, :, None] * length + column[:, None, :]).flatten(1)
        seen = pixels.gather(2, place[:, None].expand_as(pixels)).view_as(x)
        total = total + weight[:, i, None, None, None] * seen
    return total


def glass_blur(x: Tensor, draws: Draws, *, sigma: Tensor, reach: Tensor, rounds: Tensor) -> Tensor:
    """Seen through frosted glass.

    The published code walks over the pixels from the bottom right, and exchanges each with a random one at most
    ``reach`` up or left and less than ``reach`` down or right. Its exchange, a tuple assignment of NumPy views,
    overwrites the first pixel before it is read for the second: what it does, and what the published sets were made
    with, is a copy of the other pixel. So do we.
    """
    levels = cut(separable.blur(x, sigma)) / 255
    for number in range(int(rounds.max())):
        for distance in sorted(set(reach.tolist())):
            rows = ((reach == distance) & (rounds > number)).nonzero().squeeze(1)
            if len(rows):
                offsets = draws.uniform(f"neighbour {number}", 2, *x.shape[2:])[rows]
                levels[rows] = _copied(levels[rows], int(distance), offsets)
    return separable.blur(levels, sigma)


def _copied(x: Tensor, reach: int, offsets: Tensor) -> Tensor:
    """One walk, all pixels at once.

    Each pixel is written once, by a copy of another. If that one was visited before, its own new value is what is
    copied, and so on: a chain that ends at a pixel not yet visited, or never. Following every link of every chain
    twice as far in each round finds the ends.
    """
    height, width = x.shape[2:]
    down, right = ((offsets * 2 * reach).floor() - reach).long().unbind(1)
    row = torch.arange(height, device=x.device)[:, None].expand(height, width)
    column = torch.arange(width, device=x.device).expand(height, width)
    walked = (row > reach) & (row <= height - reach) & (column > reach) & (column <= width - reach)
    here = (row * width + column).expand(len(x), -1, -1)
    there = torch.where(walked, here + down * width + right, here)
    # a pixel visited before this one lies later in memory; from there the chain goes on
    onward = (walked.expand_as(there).flatten(1).gather(1, there.flatten(1))) & (there > here).flatten(1)
    link = torch.where(onward, there.flatten(1), torch.full_like(there, -1).flatten(1))
    return x.flatten(2).gather(2, _ends(there.flatten(1), link)[:, None].expand(-1, x.shape[1], -1)).view_as(x)


def _ends(source: Tensor, link: Tensor) -> Tensor:
    """Where each chain ends: the ``source`` of its last pixel, which has no ``link``."""
    place = torch.arange(source.shape[1], device=source.device).expand_as(source)
    jump = torch.where(link >= 0, link, place)
    while True:
        further = jump.gather(1, jump)
        if torch.equal(further, jump):
            return source.gather(1, jump)
        jump = further


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
