"""Recombination: near outliers without a generator, laid from patches of images of different classes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.training.loop.randomness import generator as random_numbers


@dataclass(frozen=True)
class Recombined:
    """Images made from patches, and where each patch comes from.

    Parameters
    ----------
    pixels : uint8 ``[N, C, H, W]``.
    labels : ``[N]`` class of the image that gave the most patches, the first of those that gave equally many.
    sources : ``[N, S]`` rows of the images that patches were taken from.
    choice : ``[N, pieces, pieces]`` which of the ``S`` sources fills each cell.
    """

    pixels: Tensor
    labels: Tensor
    sources: Tensor
    choice: Tensor


def recombine(
    pixels: Tensor, labels: Tensor, count: int, *, seed: int = 0, pieces: int = 4, sources: int = 2
) -> Recombined:
    """New images of patches that stay in their places, each from one of a few images of different classes.

    Edges, colours and textures are those of the training images, and what they depict is not: the fallback where there
    is too little data, or time, to train a generator. Many of the results still show one class or none, so they are
    filtered by the mutual information of an ensemble like the samples of a generator.

    Parameters
    ----------
    pixels : uint8 ``[N, C, H, W]`` in-distribution images.
    labels : ``[N]`` their classes.
    count : how many images to make.
    seed : of the choice of images and patches; image i depends on nothing else.
    pieces : cells along each side; where a side does not divide, cells differ by one pixel.
    sources : images that each new one is laid from, all of different classes.
    """
    classes = torch.unique(labels)
    if sources < 2 or len(classes) < sources:
        raise DataError(f"recombination takes patches of {sources} classes; there are {len(classes)}, and 2 are needed")
    if not 2 <= pieces <= min(pixels.shape[2:]):
        raise DataError(f"images of {list(pixels.shape[2:])} pixels cannot be cut into {pieces} pieces a side")
    draws = random_numbers("recombination", seed)
    # by random keys: a random order of the classes, then a random image of each
    order = torch.rand(count, len(classes), generator=draws).argsort(dim=1)[:, :sources]
    chosen = torch.empty(count, sources, dtype=torch.int64)
    share = torch.rand(count, sources, generator=draws)
    for number, each in enumerate(classes):
        rows = torch.nonzero(labels == each).flatten()
        chosen = torch.where(order == number, rows[(share * len(rows)).long().clamp(max=len(rows) - 1)], chosen)
    choice = torch.randint(sources, (count, pieces, pieces), generator=draws)
    height, width = pixels.shape[2:]
    down, across = (torch.arange(side) * pieces // side for side in (height, width))
    wanted = choice[:, down][:, :, across]
    laid = torch.zeros(count, *pixels.shape[1:], dtype=pixels.dtype)
    for number in range(sources):
        laid = torch.where((wanted == number).unsqueeze(1), pixels[chosen[:, number]], laid)
    most = torch.nn.functional.one_hot(choice.flatten(1), sources).sum(dim=1).argmax(dim=1)
    return Recombined(laid, labels[chosen.gather(1, most.unsqueeze(1)).flatten()], chosen, choice)
