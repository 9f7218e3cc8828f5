"""Damage that keeps the character: four corruptions at three severities, dealt evenly."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from oodscope.data.glyphs.drawing import SIDE, Images, as_bytes, as_floats

CORRUPTIONS = ("blur", "noise", "contrast", "pixelate")
BLUR = (0.6, 0.9, 1.2)
NOISE = (0.10, 0.15, 0.20)
CONTRAST = (0.5, 0.4, 0.3)
CELLS = (22, 18, 14)

Scene = NDArray[np.float32]


def corrupt(images: Images, rng: np.random.Generator) -> Images:
    """Corrupt image ``i`` by kind ``i mod 4`` at severity ``i // 4 mod 3``, so that any prefix is balanced."""
    scene = as_floats(images)
    grain = rng.standard_normal(scene.shape, dtype=np.float32)
    index = np.arange(len(images))
    for kind, name in enumerate(CORRUPTIONS):
        for severity in range(3):
            rows = (index % 4 == kind) & (index // 4 % 3 == severity)
            scene[rows] = _damaged(scene[rows], name, severity, grain[rows])
    return as_bytes(scene)


def _damaged(scene: Scene, corruption: str, severity: int, grain: Scene) -> Scene:
    if corruption == "blur":
        sigma = BLUR[severity]
        blurred: Scene = gaussian_filter(scene, (0, sigma, sigma, 0))
        return blurred
    if corruption == "noise":
        return scene + NOISE[severity] * grain
    if corruption == "contrast":
        mean: Scene = scene.mean(axis=(1, 2, 3), keepdims=True)
        return mean + CONTRAST[severity] * (scene - mean)
    return _pixelated(scene, CELLS[severity])


def _pixelated(scene: Scene, cells: int) -> Scene:
    """Replace each cell of a grid by its mean; where ``cells`` does not divide the side, sizes differ by a pixel."""
    cell = np.arange(SIDE) * cells // SIDE
    same = (cell[:, None] == cell).astype(np.float32)
    average = same / same.sum(axis=1)
    pixelated: Scene = np.einsum("ij,njkc,lk->nilc", average, scene, average, optimize=True)
    return pixelated
