"""Far-OOD: procedural textures, ten kinds.

Each kind is a function that draws ``count`` patterns [N, 32, 32]; the pattern of an image is then stretched between
two random colours. A kind asks its generator for numbers once, so that its first patterns never depend on how many
follow.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from oodscope.data.glyphs.drawing import SIDE, as_bytes, palette
from oodscope.data.glyphs.source import Drawn, Source, Streams

Field = NDArray[np.float32]
Pattern = NDArray[Any]
"""Two-valued or continuous, on any scale: its extremes become the two colours."""

_ROW, _COLUMN = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)


def _numbers(count: int, rng: np.random.Generator) -> Field:
    """Four uniform numbers per image, shaped [4, N, 1, 1] to meet the pixel grid."""
    return rng.random((count, 4), dtype=np.float32).T[..., None, None]


def _turned(count: int, rng: np.random.Generator, shortest: float, longest: float) -> tuple[Field, Field]:
    """Pixel coordinates in units of a random period, turned by a random angle and shifted by a random phase."""
    turn, length, phase, other_phase = _numbers(count, rng)
    cosine, sine = np.cos(np.pi * turn), np.sin(np.pi * turn)
    period = shortest * (longest / shortest) ** length
    along = (_COLUMN * cosine + _ROW * sine) / period + phase
    across = (_ROW * cosine - _COLUMN * sine) / period + other_phase
    return along, across


def _smoothed(grain: Field, sigma: float) -> Field:
    smooth: Field = gaussian_filter(grain, (0, sigma, sigma))
    return smooth


def _stripes(count: int, rng: np.random.Generator) -> Pattern:
    along, _ = _turned(count, rng, 4, 14)
    return along % 1 < 0.5


def _waves(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 6, 16)
    wave: Field = np.sin(2 * np.pi * (along + 0.4 * np.sin(2 * np.pi * across)))
    return wave


def _checkers(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 3, 9)
    board: Field = (np.floor(along) + np.floor(across)) % 2
    return board


def _dots(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 5, 12)
    inside: NDArray[np.bool_] = np.hypot(along % 1 - 0.5, across % 1 - 0.5) < 0.3
    return inside


def _bricks(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 6, 14)
    layer = np.floor(2 * across)
    return (2 * across % 1 > 0.2) & ((along + layer / 2) % 1 > 0.1)


def _hatching(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 5, 12)
    return (along % 1 < 0.25) | (across % 1 < 0.25)


def _rings(count: int, rng: np.random.Generator) -> Pattern:
    x, y, period, phase = _numbers(count, rng)
    radius = np.hypot(_COLUMN - SIDE * x, _ROW - SIDE * y)
    wave: Field = np.sin(2 * np.pi * (radius / (4 + 8 * period) + phase))
    return wave


def _gradient(count: int, rng: np.random.Generator) -> Pattern:
    along, across = _turned(count, rng, 32, 64)
    return along + across**2 / 2


def _blobs(count: int, rng: np.random.Generator) -> Pattern:
    return _smoothed(rng.standard_normal((count, SIDE, SIDE), dtype=np.float32), 2.5) > 0


def _plasma(count: int, rng: np.random.Generator) -> Pattern:
    grain = rng.standard_normal((count, SIDE, SIDE), dtype=np.float32)
    octaves = [sigma * _smoothed(grain, sigma) for sigma in (0.5, 1.0, 2.0, 4.0, 8.0)]
    plasma: Field = np.stack(octaves).sum(axis=0)
    return plasma


KINDS: dict[str, Callable[[int, np.random.Generator], Pattern]] = {
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
    field = KINDS[name](count, streams.shape).astype(np.float32)
    low, high = field.min(axis=(1, 2), keepdims=True), field.max(axis=(1, 2), keepdims=True)
    share = ((field - low) / (high - low))[..., None]
    ground, figure = palette(count, streams.colour)
    return Drawn(as_bytes(ground + (figure - ground) * share), np.full(count, name))


TEXTURES = Source(dict.fromkeys(KINDS, "texture"), _draw)
