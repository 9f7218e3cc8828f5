"""Glyphs: the embedded benchmark, drawn on the spot from fonts that are already installed."""
