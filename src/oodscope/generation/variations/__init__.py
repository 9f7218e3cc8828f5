"""Variations: families of images around a source image, or in the range of a generator."""
