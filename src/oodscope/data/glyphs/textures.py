"""Far-OOD: procedural textures, ten kinds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from oodscope.data.glyphs.drawing import SIDE, Images, as_bytes
from oodscope.data.glyphs.randomness import Streams
from oodscope.data.glyphs.source import Drawn, Source

Field = NDArray[np.float32]

_ROW, _COLUMN = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)


def _turned(draws: Field, period: tuple[float, float]) -> tuple[Field, Field]:
    """Coordinates [N, 32, 32] in periods, turned by a random angle and shifted by a random phase."""
    angle = np.pi * draws[:, 0, None, None]
    length = (period[0] * (period[1] / period[0]) ** draws[:, 1])[:, None, None]
    along = (_COLUMN * np.cos(angle) + _ROW * np.sin(angle)) / length + draws[:, 2, None, None]
    across = (_ROW * np.cos(angle) - _COLUMN * np.sin(angle)) / length + draws[:, 3, None, None]
    return along, across


def _stripes(draws: Field, grain: Field) -> Field:
    along, _ = _turned(draws, (4, 14))
    return np.where(along % 1 < 0.5, 1, 0)


def _waves(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (6, 16))
    return 0.5 + 0.5 * np.sin(2 * np.pi * (along + 0.4 * np.sin(2 * np.pi * across)))


def _checkers(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (3, 9))
    return (np.floor(along) + np.floor(across)) % 2


def _dots(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (5, 12))
    return ((along % 1 - 0.5) ** 2 + (across % 1 - 0.5) ** 2 < 0.09).astype(np.float32)


def _bricks(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (6, 14))
    return ((across * 2 % 1 > 0.2) & ((along + 0.5 * (np.floor(across * 2) % 2)) % 1 > 0.1)).astype(np.float32)


def _hatching(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (5, 12))
    return np.maximum(along % 1 < 0.25, across % 1 < 0.25).astype(np.float32)


def _rings(draws: Field, grain: Field) -> Field:
    radius = np.hypot(_COLUMN - SIDE * draws[:, 0, None, None], _ROW - SIDE * draws[:, 1, None, None])
    return 0.5 + 0.5 * np.sin(2 * np.pi * (radius / (4 + 8 * draws[:, 2, None, None]) + draws[:, 3, None, None]))


def _gradient(draws: Field, grain: Field) -> Field:
    along, across = _turned(draws, (32, 64))
    return along + (draws[:, 2, None, None] - 0.5) * across**2


def _blobs(draws: Field, grain: Field) -> Field:
    return (gaussian_filter(grain, (0, 2.5, 2.5)) > 0).astype(np.float32)


def _plasma(draws: Field, grain: Field) -> Field:
    return sum(sigma * gaussian_filter(grain, (0, sigma, sigma)) for sigma in (0.5, 1, 2, 4, 8))


KINDS: dict[str, Callable[[Field, Field], Field]] = {
    "stripes": _stripes,
    "waves": _waves,
    "checkers": _checkers,
    "dots": _dots,
    "bricks": _bricks,
    "hatching": _hatching,
    "rings": _rings,
    "gradient": _gradient,
    "blobs": _blobs,
    "plasma": _plasma,
}


def _draw(name: str, count: int, streams: Streams) -> Drawn:
    """Stretch the field of one kind between two random colours."""
    draws = streams.shape.random((count, 4), dtype=np.float32)
    grain = streams.noise.standard_normal((count, SIDE, SIDE), dtype=np.float32)
    field = KINDS[name](draws, grain)
    low, high = field.min(axis=(1, 2), keepdims=True), field.max(axis=(1, 2), keepdims=True)
    field = ((field - low) / np.maximum(high - low, 1e-6))[..., None]
    colours = streams.colour.random((count, 2, 1, 1, 3), dtype=np.float32)
    images: Images = as_bytes(colours[:, 0] * (1 - field) + colours[:, 1] * field)
    return Drawn(images, np.full(count, name))


TEXTURES = Source(dict.fromkeys(KINDS, "texture"), _draw)
