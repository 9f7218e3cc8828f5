"""The character sets: ID, near, the covariate shifts and the outliers for tuning and training."""

import unicodedata

import numpy as np

from oodscope.data.glyphs.corruptions import corrupt
from oodscope.data.glyphs.drawing import TRAIN_FONTS, glyph_mask, paint, pose, unseen_fonts
from oodscope.data.glyphs.source import Drawn, Source, Streams

# Which characters play which role.
#
# Five scripts hold the in-distribution classes, four characters each, some of them easily confused (Ш and Щ, მ
# and შ). Held-out characters of the same scripts are near-OOD: a detector has to notice a new letter, not a new
# alphabet. The characters behind ``ood_val`` and ``ood_train`` appear nowhere else, so that tuning and outlier
# exposure learn nothing about the letters a detector is judged on.
#
# Twins across scripts (Latin A, Greek Α, Cyrillic А) never stand on both sides: a held-out letter must not be a
# picture of an ID class.


ID = {
    "latin": "KkPR",
    "greek": "ΔζξΩ",
    "cyrillic": "ШЩИЙ",
    "armenian": "ԱՍԴՂ",
    "georgian": "მშხდ",
}

NEAR = {
    "latin": "WeSQA",
    "greek": "δεςθΣ",
    "cyrillic": "бЦЭЖЮ",
    "armenian": "ՀէՆՅԶ",
    "georgian": "წთრყლ",
}

OOD_VAL = {"latin": "Fa", "greek": "Γμ", "cyrillic": "ЫЛ", "armenian": "ՔԿ", "georgian": "ფქ"}

OOD_TRAIN = {
    "latin": "GDYJ",
    "greek": "γΞωψ",
    "cyrillic": "ФДЧЪ",
    "armenian": "ԹՌԳՖ",
    "georgian": "ტჯღო",
}


def class_name(character: str) -> str:
    """A name that survives any terminal, file system or LaTeX table: ``Ω`` is ``greek capital omega``."""
    return unicodedata.name(character).replace("LETTER ", "").lower()


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
