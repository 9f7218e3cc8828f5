"""Variations of one pixel, whose energy landscape is a function on paper."""

import torch

from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Box, Sphere


class Pixels(Variation):
    """The parameters are the pixels: an image of one row, whatever the source image."""

    name = "pixels"
    conditional = False

    def __init__(self, dimension=1, sphere=False):
        self._domain = Sphere(dimension) if sphere else Box(dimension)

    @property
    def domain(self):
        return self._domain

    @property
    def identity(self):
        return None

    @property
    def parameters(self):
        return tuple(f"pixel {number}" for number in range(self._domain.dimension))

    def __call__(self, points, images=None):
        return points[:, None, None, :]

    def describe(self):
        return {"name": self.name, "domain": repr(self._domain)}


class Shift(Variation):
    """Brightness of a source image, -0.5 to 0.5, the identity in the middle; clipped to [0, 1]."""

    name = "shift"

    @property
    def domain(self):
        return Box(1)

    @property
    def identity(self):
        return (0.5,)

    @property
    def parameters(self):
        return ("brightness",)

    def __call__(self, points, images=None):
        return (images + (points - 0.5)[:, :, None, None]).clamp(0, 1)

    def describe(self):
        return {"name": self.name}


class Ball(Variation):
    """Every pixel of a source image within a radius; the middle of the cube is the identity."""

    name = "ball"

    def __init__(self, radius, pixels=192):
        self.epsilon, self._pixels = radius, pixels

    @property
    def domain(self):
        return Box(self._pixels)

    @property
    def identity(self):
        return (0.5,) * self.domain.dimension

    @property
    def parameters(self):
        return ()

    def __call__(self, points, images=None):
        return (images + (2 * points - 1).view_as(images) * self.epsilon).clamp(0, 1)

    def describe(self):
        return {"name": self.name, "radius": self.epsilon}


def energy(function):
    """A scorer from a function of the pixels as rows, ``[N, D]``."""
    return FunctionScorer(lambda images: function(images.flatten(1).double()))


SLOPE = energy(lambda z: 3 * z[:, 0])
FLAT = energy(lambda z: torch.zeros(len(z)))
