"""Damage that keeps the character: four corruptions at three severities, dealt evenly."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from oodscope.data.glyphs.drawing import SIDE, Images, as_bytes

CORRUPTIONS = ("blur", "noise", "contrast", "pixelate")
BLUR = (0.9, 1.3, 1.8)
NOISE = (0.15, 0.22, 0.30)
CONTRAST = (0.45, 0.30, 0.20)
BLOCK = (2, 3, 4)

Scene = NDArray[np.float32]


def corrupt(images: Images, rng: np.random.Generator) -> Images:
    """Corrupt image ``i`` by kind ``i mod 4`` at severity ``i // 4 mod 3``, so that any prefix is balanced."""
    scene = images.astype(np.float32) / 255
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
        mean = scene.mean(axis=(1, 2, 3), keepdims=True)
        return mean + CONTRAST[severity] * (scene - mean)
    return _pixelated(scene, BLOCK[severity])


def _pixelated(scene: Scene, block: int) -> Scene:
    """Replace each block by its mean; the last row and column of blocks may be smaller than the rest."""
    starts = np.arange(0, SIDE, block)
    sizes = np.diff(np.append(starts, SIDE)).astype(np.float32)
    for axis in (1, 2):
        shape = [1, 1, 1, 1]
        shape[axis] = len(sizes)
        means = np.add.reduceat(scene, starts, axis=axis) / sizes.reshape(shape)
        scene = np.repeat(means, sizes.astype(int), axis=axis)
    return scene
