"""Variations: families of images around a source image, or in the range of a generator."""

from oodscope.generation.variations.base import Variation

__all__ = ["Variation"]
