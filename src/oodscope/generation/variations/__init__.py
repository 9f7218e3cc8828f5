"""Variations: families of images around a source image, or in the range of a generator."""

from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation

__all__ = ["GanVariation", "Variation"]
