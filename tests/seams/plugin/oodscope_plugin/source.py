"""A source of images: pictures drawn from a seed, so that a place is a number."""

from typing import Literal

import numpy as np

from oodscope import ImageSet
from oodscope.data.images.sourcespec import SourceSpec


class SeededSpec(SourceSpec):
    """So many pictures of 8 x 8 pixels; those of kind ``noise`` have no class."""

    source: Literal["seeded"]
    seed: int
    count: int = 24
    kind: Literal["quarters", "noise"] = "quarters"

    @classmethod
    def from_place(cls, place):
        kind, _, seed = place.rpartition("/")
        return cls(source="seeded", seed=int(seed), kind=kind or "quarters")

    def open(self, name, root, progress=None):
        rng = np.random.default_rng(self.seed)
        labels = np.arange(self.count) % 4
        pixels = rng.integers(0, 256 if self.kind == "noise" else 120, size=(self.count, 8, 8, 3))
        if self.kind == "quarters":
            for row, label in enumerate(labels):
                top, left = divmod(label, 2)
                pixels[row, 4 * top : 4 * top + 4, 4 * left : 4 * left + 4] += 100
        return ImageSet.from_arrays(name, pixels.astype(np.uint8), labels, [f"class {c}" for c in range(4)])
