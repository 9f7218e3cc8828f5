"""Glyphs: the embedded benchmark, drawn on the spot from fonts that are already installed."""

from oodscope.data.glyphs.split import SPLITS, GlyphSplit, count_classes, render_split

__all__ = ["SPLITS", "GlyphSplit", "count_classes", "render_split"]
