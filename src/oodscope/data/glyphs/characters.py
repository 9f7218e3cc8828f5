"""The character sets: ID, near, the covariate shifts and the outliers for tuning and training."""

import numpy as np

from oodscope.data.glyphs.alphabet import class_name
from oodscope.data.glyphs.corruptions import corrupt
from oodscope.data.glyphs.drawing import paint, pose
from oodscope.data.glyphs.fonts import TRAIN_FONTS, glyph_mask, unseen_fonts
from oodscope.data.glyphs.randomness import Streams
from oodscope.data.glyphs.source import Drawn, Source


def character_source(alphabet: dict[str, str], *, unseen: bool = False, corrupted: bool = False) -> Source:
    """One class for each character of ``alphabet`` (script to characters), fonts mixed at random."""
    characters = {class_name(c): (script, c) for script, letters in alphabet.items() for c in letters}

    def draw(name: str, count: int, streams: Streams) -> Drawn:
        script, character = characters[name]
        fonts = unseen_fonts(script) if unseen else TRAIN_FONTS
        chosen = [fonts[i] for i in streams.leaf.integers(len(fonts), size=count)]
        images = paint(pose([glyph_mask(character, font) for font in chosen], streams.shape), streams)
        if corrupted:
            images = corrupt(images, streams.damage)
        return Drawn(images, np.array(chosen))

    return Source({name: script for name, (script, _) in characters.items()}, draw)
