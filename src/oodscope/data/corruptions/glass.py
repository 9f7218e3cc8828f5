"""Glass blur: pixels take the place of a neighbour, between two Gaussian filters."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.levels import cut


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
