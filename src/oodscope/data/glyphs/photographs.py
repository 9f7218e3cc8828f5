"""Far-OOD: patches of the two photographs that scikit-learn ships."""

from functools import cache

import numpy as np
from PIL import Image

from oodscope.data.glyphs.drawing import SIDE, Images
from oodscope.data.glyphs.source import Drawn, Source, Streams

SMALLEST, LARGEST = 32, 192
"""Side of a patch in the photograph, in pixels."""
CANDIDATES = 3

_FILES = {"chinese temple": "china.jpg", "dahlia": "flower.jpg"}


@cache
def _photograph(name: str) -> Image.Image:
    # Imported late: scikit-learn costs a second that no other set needs.
    from sklearn.datasets import load_sample_image

    return Image.fromarray(load_sample_image(_FILES[name]))


def _draw(name: str, count: int, streams: Streams) -> Drawn:
    """Square patches of log-uniform side; of a few candidates the busiest, since bare sky repeats itself."""
    photograph = _photograph(name)
    draws = streams.shape.random((count, CANDIDATES, 4))
    sides = SMALLEST * (LARGEST / SMALLEST) ** draws[..., 0]
    images = np.empty((count, SIDE, SIDE, 3), np.uint8)
    for row in range(count):
        patches = [_patch(photograph, side, *draw) for side, draw in zip(sides[row], draws[row, :, 1:])]
        images[row] = max(patches, key=lambda patch: float(patch.std()))
    return Drawn(images, np.full(count, name))


def _patch(photograph: Image.Image, side: float, across: float, down: float, flip: float) -> Images:
    left, top = across * (photograph.width - side), down * (photograph.height - side)
    box = (left, top, left + side, top + side)
    patch = np.asarray(photograph.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box))
    return patch[:, ::-1] if flip < 0.5 else patch


PHOTOGRAPHS = Source(dict.fromkeys(_FILES, "photograph"), _draw)
