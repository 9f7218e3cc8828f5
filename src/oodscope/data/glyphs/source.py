"""What every set of the benchmark has in common: classes, their groups, and a way to draw one class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

# Randomness by address: every image owns its numbers.
#
# The streams of a class are keyed by (seed, split, class), and a stream fills its rows in order, so row ``i`` is
# the same however many rows are drawn. Hence 100 images per class are the first 100 of 500, and no image depends
# on how the work was cut up.


class Streams(NamedTuple):
    """Independent generators, one for each purpose, so that rows of one never shift rows of another."""

    leaf: np.random.Generator
    shape: np.random.Generator
    colour: np.random.Generator
    light: np.random.Generator
    noise: np.random.Generator
    damage: np.random.Generator


def streams(seed: int, split: str, class_name: str) -> Streams:
    """The generators of one class of one split."""
    # Names, not positions: a new class or split leaves every other image as it was.
    address = np.random.SeedSequence([seed, crc32(split.encode()), crc32(class_name.encode())])
    return Streams(*(np.random.Generator(np.random.PCG64(child)) for child in address.spawn(6)))


class Drawn(NamedTuple):
    """Images [N, 32, 32, 3] of one class and, for each, its place on the lowest level of the hierarchy."""

    images: NDArray[np.uint8]
    leaves: NDArray[np.str_]


@dataclass(frozen=True)
class Source:
    """``groups`` maps each class to the level above it; ``draw(class, count, streams)`` draws its images."""

    groups: Mapping[str, str]
    draw: Callable[[str, int, Streams], Drawn]
