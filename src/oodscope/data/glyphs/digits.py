"""Far-OOD: the handwritten digits of scikit-learn, in the colours and noise of the characters."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.glyphs.drawing import SIDE, paint
from oodscope.data.glyphs.randomness import Streams
from oodscope.data.glyphs.source import Drawn, Source

NAMES = tuple(f"digit {value}" for value in range(10))


@cache
def _strokes(name: str) -> NDArray[np.float32]:
    """All drawings of one digit, [N, 32, 32] between 0 (paper) and 1 (ink)."""
    # Imported late: scikit-learn costs a second that no other set needs.
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    mine = pixels[labels == NAMES.index(name)].reshape(-1, 8, 8).astype(np.float32) / 16
    resized = [Image.fromarray(m).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for m in mine]
    return np.clip(np.stack([np.asarray(r) for r in resized]), 0, 1)


def _draw(name: str, count: int, streams: Streams) -> Drawn:
    """Each drawing once, in random order, before any comes again in other colours."""
    strokes = _strokes(name)
    order = streams.shape.permutation(len(strokes))
    masks = strokes[np.resize(order, count)]
    return Drawn(paint(masks, streams), np.full(count, name))


DIGITS = Source(dict.fromkeys(NAMES, "handwriting"), _draw)
