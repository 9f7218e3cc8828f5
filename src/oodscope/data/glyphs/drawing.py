"""From a glyph to a picture: pose it, colour it, add noise."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.glyphs.fonts import CANVAS
from oodscope.data.glyphs.randomness import Streams

SIDE = 32
"""Side of every image, in pixels."""

ROTATION = 20.0
SCALE = (0.5, 0.8)
SHEAR = 0.15
SHIFT = 4.0
FAINTEST_INK = 0.35
TINT = 0.6
SHADE = 0.35
NOISE = (0.02, 0.12)

Images = NDArray[np.uint8]
Masks = NDArray[np.float32]


def pose(glyphs: Sequence[Image.Image], rng: np.random.Generator) -> Masks:
    """Rotate, shear, scale and shift each glyph into a mask [N, 32, 32] between 0 (paper) and 1 (ink)."""
    draws = rng.random((len(glyphs), 5))
    angle = np.radians(ROTATION) * (2 * draws[:, 0] - 1)
    zoom = 1 / (SCALE[0] + (SCALE[1] - SCALE[0]) * draws[:, 1])
    shear = SHEAR * (2 * draws[:, 2] - 1)
    shift = SHIFT * (2 * draws[:, 3:5] - 1)
    # Pillow wants the inverse map, from a pixel of the image to a point of the glyph.
    a, b = zoom * np.cos(angle), -zoom * np.sin(angle)
    d, e = -b + shear * a, a + shear * b
    centre = SIDE / 2 + shift
    c = CANVAS / 2 - a * centre[:, 0] - b * centre[:, 1]
    f = CANVAS / 2 - d * centre[:, 0] - e * centre[:, 1]
    masks = np.empty((len(glyphs), SIDE, SIDE), np.uint8)
    for row, (glyph, inverse) in enumerate(zip(glyphs, np.stack([a, b, c, d, e, f], axis=1).tolist())):
        posed = glyph.transform((SIDE, SIDE), Image.Transform.AFFINE, inverse, Image.Resampling.BICUBIC)
        masks[row] = np.asarray(posed)
    return masks.astype(np.float32) / 255


def paint(masks: Masks, streams: Streams) -> Images:
    """Ink of one random colour on shaded paper of another, under pixel noise."""
    draws = streams.colour.random((len(masks), 12), dtype=np.float32)[:, None, None, :]
    paper = draws[..., :3]
    # Light ink on dark paper or dark on light: two random colours of equal brightness would not be legible.
    room = np.where(paper.mean(axis=-1, keepdims=True) < 0.5, 1 - paper, -paper)
    ink = paper + room * (FAINTEST_INK + (1 - FAINTEST_INK) * draws[..., 3:4]) * (1 - TINT * draws[..., 4:7])
    x, y = np.meshgrid(*[np.linspace(-1, 1, SIDE, dtype=np.float32)] * 2)
    slope = 2 * draws[..., 7:9] - 1
    shade = SHADE * (x * slope[..., 0] + y * slope[..., 1])[..., None] * draws[..., 9:12]
    scene = paper + shade + (ink - paper) * masks[..., None]
    return noisy(scene, streams.noise, NOISE)


def noisy(scene: NDArray[np.float32], rng: np.random.Generator, level: tuple[float, float]) -> Images:
    """Add Gaussian noise of a random strength within ``level`` to each image and round to bytes."""
    draws = rng.standard_normal((len(scene), 1 + SIDE * SIDE * 3), dtype=np.float32)
    # The first number of a row sets its strength: the normal CDF would be exact, a squashed one is enough.
    strength = level[0] + (level[1] - level[0]) * np.clip(0.5 + draws[:, 0] / 4, 0, 1)
    grain = draws[:, 1:].reshape(scene.shape) * strength[:, None, None, None]
    return as_bytes(scene + grain)


def as_bytes(scene: NDArray[np.float32]) -> Images:
    """Round a picture in [0, 1] to bytes; what lies outside is clipped."""
    return np.rint(np.clip(scene, 0, 1) * 255).astype(np.uint8)
