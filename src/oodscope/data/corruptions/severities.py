"""How strong: the published constants of each corruption, from severity 1 to 5, and everything between.

Hendrycks & Dietterich (ICLR 2019) chose constants by eye for three sizes: CIFAR-10-C (32 px), Tiny-ImageNet-C
(64 px) and ImageNet-C (224 px). An image of another size takes those of the size nearest in ratio.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scale = Literal["cifar", "tiny_imagenet", "imagenet"]
Rows = tuple[tuple[float, ...], ...]

WORST = 5
_SIDES: Mapping[Scale, int] = {"cifar": 32, "tiny_imagenet": 64, "imagenet": 224}


def scale_for(height: int, width: int) -> Scale:
    """Whose constants an image of this size takes: below 45.3 px CIFAR's, below 119.7 px Tiny ImageNet's."""
    side = min(height, width)
    return min(_SIDES, key=lambda scale: abs(np.log(side / _SIDES[scale])))


@dataclass(frozen=True)
class Ladder:
    """The constants of one corruption.

    Parameters
    ----------
    names : of the constants, as the corruption's function calls them.
    identity : the constants that change nothing: severity 0. ``None`` means: as at severity 1.
    cifar, tiny_imagenet, imagenet : the constants at severity 1, 2, 3, 4 and 5.
    steps : constants that cannot lie between two values; they jump half way between severities.
    """

    names: tuple[str, ...]
    identity: tuple[float | None, ...]
    cifar: Rows
    tiny_imagenet: Rows
    imagenet: Rows
    steps: tuple[str, ...] = ()

    def rungs(self, scale: Scale) -> dict[str, tuple[float, ...]]:
        """Each constant at severity 0, 1, ... 5."""
        rows: Rows = getattr(self, scale)
        starts = zip(self.names, self.identity, rows[0], strict=True)
        return {
            name: (first if start is None else start, *(row[number] for row in rows))
            for number, (name, start, first) in enumerate(starts)
        }

    def at(self, scale: Scale, severity: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The constants at each severity, linear between the published ones."""
        below = np.minimum(np.floor(severity), WORST - 1).astype(np.int64)
        share = severity - below
        found = {}
        for name, values in self.rungs(scale).items():
            rungs = np.array(values, np.float64)
            if name in self.steps:
                found[name] = rungs[np.floor(severity + 0.5).astype(np.int64)]
            else:
                found[name] = (1.0 - share) * rungs[below] + share * rungs[below + 1]
        return found


def _one(*values: float) -> Rows:
    return tuple((value,) for value in values)


LADDERS = {
    "gaussian_noise": Ladder(
        ("deviation",), (0,),
        _one(0.04, 0.06, 0.08, 0.09, 0.10),
        _one(0.04, 0.08, 0.12, 0.15, 0.18),
        _one(0.08, 0.12, 0.18, 0.26, 0.38),
    ),
    # published as photons per white pixel; their reciprocal, the variance of white, interpolates down to none
    "shot_noise": Ladder(
        ("variance",), (0,),
        _one(1 / 500, 1 / 250, 1 / 100, 1 / 75, 1 / 50),
        _one(1 / 250, 1 / 100, 1 / 50, 1 / 30, 1 / 15),
        _one(1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3),
    ),
    "impulse_noise": Ladder(
        ("amount",), (0,),
        _one(0.01, 0.02, 0.03, 0.05, 0.07),
        _one(0.01, 0.02, 0.05, 0.08, 0.14),
        _one(0.03, 0.06, 0.09, 0.17, 0.27),
    ),
    "speckle_noise": Ladder(
        ("deviation",), (0,),
        _one(0.06, 0.1, 0.12, 0.16, 0.2),
        _one(0.15, 0.2, 0.25, 0.3, 0.35),
        _one(0.15, 0.2, 0.35, 0.45, 0.6),
    ),
    "gaussian_blur": Ladder(
        ("sigma",), (0,),
        _one(0.4, 0.6, 0.7, 0.8, 1),
        _one(0.5, 0.75, 1, 1.25, 1.5),
        _one(1, 2, 3, 4, 6),
    ),
    "defocus_blur": Ladder(
        ("radius", "alias"), (0, 0),
        ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    ),
    "glass_blur": Ladder(
        ("sigma", "reach", "rounds"), (0, None, 0),
        ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        steps=("reach", "rounds"),
    ),
    "motion_blur": Ladder(
        ("radius", "sigma"), (0, 0),
        ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    ),
    "snow": Ladder(
        ("mean", "deviation", "zoom", "threshold", "radius", "sigma", "keep"), (0, 0, None, None, None, None, 1),
        ((0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.1, 0.2, 1, 0.5, 10, 4, 0.9), (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
         (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)),
        ((0.1, 0.2, 1, 0.6, 8, 3, 0.8), (0.1, 0.2, 1, 0.5, 10, 4, 0.8), (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
         (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)),
        ((0.1, 0.3, 3, 0.5, 10, 4, 0.8), (0.2, 0.3, 2, 0.5, 12, 4, 0.7), (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
         (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65), (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55)),
    ),
    "frost": Ladder(
        ("keep", "ice"), (1, 0),
        ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
        ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    ),
    "fog": Ladder(
        ("thickness", "decay"), (0, None),
        ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    ),
    "brightness": Ladder(
        ("lift",), (0,),
        _one(0.05, 0.1, 0.15, 0.2, 0.3),
        _one(0.1, 0.2, 0.3, 0.4, 0.5),
        _one(0.1, 0.2, 0.3, 0.4, 0.5),
    ),
    "contrast": Ladder(
        ("slope",), (1,),
        _one(0.75, 0.5, 0.4, 0.3, 0.15),
        _one(0.4, 0.3, 0.2, 0.1, 0.05),
        _one(0.4, 0.3, 0.2, 0.1, 0.05),
    ),
    "saturate": Ladder(
        ("factor", "lift"), (1, 0),
        ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    ),
    # shares of the side; ImageNet-C took 244 for the side of its 224 px images
    "elastic_transform": Ladder(
        ("ripple", "smoothness", "stretch"), (0, 0, 0),
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
        ((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)),
        tuple(tuple(value * 244 / 224 for value in row) for row in (
            (2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))),
    ),
    "pixelate": Ladder(
        ("share",), (1,),
        _one(0.95, 0.9, 0.85, 0.75, 0.65),
        _one(0.9, 0.8, 0.7, 0.6, 0.5),
        _one(0.6, 0.5, 0.4, 0.3, 0.25),
    ),
    "jpeg_compression": Ladder(
        ("quality",), (100,),
        _one(80, 65, 58, 50, 40),
        _one(65, 58, 50, 40, 25),
        _one(25, 18, 15, 10, 7),
    ),
    "spatter": Ladder(
        ("mean", "deviation", "sigma", "threshold", "strength", "mud"), (0, 0, None, None, 0, 0),
        ((0.62, 0.1, 0.7, 0.7, 0.5, 0), (0.65, 0.1, 0.8, 0.7, 0.5, 0), (0.65, 0.3, 1, 0.69, 0.5, 0),
         (0.65, 0.1, 0.7, 0.69, 0.6, 1), (0.65, 0.1, 0.5, 0.68, 0.6, 1)),
        ((0.62, 0.1, 0.7, 0.7, 0.6, 0), (0.65, 0.1, 0.8, 0.7, 0.6, 0), (0.65, 0.3, 1, 0.69, 0.6, 0),
         (0.65, 0.1, 0.7, 0.68, 0.6, 1), (0.65, 0.1, 0.5, 0.67, 0.6, 1)),
        ((0.65, 0.3, 4, 0.69, 0.6, 0), (0.65, 0.3, 3, 0.68, 0.6, 0), (0.65, 0.3, 2, 0.68, 0.5, 0),
         (0.65, 0.3, 1, 0.65, 1.5, 1), (0.67, 0.4, 1, 0.65, 1.5, 1)),
        steps=("mean", "deviation", "sigma", "threshold", "strength", "mud"),
    ),
    # the layers that are averaged are magnified 1, 1 + step, ... up to the end
    "zoom_blur": Ladder(
        ("rung",), (0,), _one(1, 2, 3, 4, 5), _one(1, 2, 3, 4, 5), _one(1, 2, 3, 4, 5),
    ),
}  # fmt: skip

_CIFAR_ZOOM = ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))
ZOOMS: Mapping[Scale, tuple[tuple[float, float], ...]] = {
    "cifar": _CIFAR_ZOOM,
    "tiny_imagenet": _CIFAR_ZOOM,
    "imagenet": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
}
"""End (not included) and step of the magnifications of ``zoom_blur``."""
