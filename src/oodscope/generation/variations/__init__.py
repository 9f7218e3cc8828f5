"""Variations: families of images around a source image, or in the range of a generator."""

from oodscope.generation.variations.affine import Affine
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.blend import Blend
from oodscope.generation.variations.color import Color
from oodscope.generation.variations.composition import Composition
from oodscope.generation.variations.corruption import Corruption
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.linf import LInf
from oodscope.generation.variations.registry import VARIATIONS, create_variation

__all__ = [
    "VARIATIONS",
    "Affine",
    "Blend",
    "Color",
    "Composition",
    "Corruption",
    "GanVariation",
    "LInf",
    "Variation",
    "create_variation",
]
