"""What every set of the benchmark has in common: classes, their groups, and a way to draw one class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.data.glyphs.randomness import Streams


class Drawn(NamedTuple):
    """Images [N, 32, 32, 3] of one class and, for each, its place on the lowest level of the hierarchy."""

    images: NDArray[np.uint8]
    leaves: NDArray[np.str_]


@dataclass(frozen=True)
class Source:
    """``groups`` maps each class to the level above it; ``draw(class, count, streams)`` draws its images."""

    groups: Mapping[str, str]
    draw: Callable[[str, int, Streams], Drawn]
