"""Far-OOD: the handwritten digits of scikit-learn, white on black."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.glyphs.drawing import SIDE, as_bytes
from oodscope.data.glyphs.source import Drawn, Source, Streams

NAMES = tuple(f"digit {value}" for value in range(10))


@cache
def _strokes(name: str) -> NDArray[np.float32]:
    """All drawings of one digit, [N, 32, 32] between 0 (paper) and 1 (ink)."""
    # Imported late: scikit-learn costs a second that no other set needs.
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    small = (pixels[labels == NAMES.index(name)] / 16).reshape(-1, 8, 8).astype(np.float32)
    large = [Image.fromarray(drawing).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for drawing in small]
    return np.stack([np.asarray(drawing, np.float32) for drawing in large]).clip(0, 1)


def _draw(name: str, count: int, streams: Streams) -> Drawn:
    """Every drawing once, in random order, before any returns; each time with ink of another strength."""
    strokes = _strokes(name)
    order = np.resize(streams.shape.permutation(len(strokes)), count)
    strength = 0.6 + 0.4 * streams.colour.random((count, 1, 1), dtype=np.float32)
    grey = as_bytes(strokes[order] * strength)
    return Drawn(np.repeat(grey[..., None], 3, axis=-1), np.full(count, name))


DIGITS = Source(dict.fromkeys(NAMES, "handwriting"), _draw)
