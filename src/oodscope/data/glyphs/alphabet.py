"""Which characters play which role.

Five scripts hold the in-distribution classes, four characters each. The held-out characters of the same
scripts are near-OOD: a detector has to notice a new letter, not a new alphabet. Three further scripts share no
character with training at all. The characters behind ``ood_val`` and ``ood_train`` appear nowhere else, so that
tuning and outlier exposure learn nothing about the sets a detector is judged on.

Letters that look alike across scripts (Latin A, Greek Α, Cyrillic А) are left out: an OOD image must not be a
legible picture of an ID class.
"""

import unicodedata

ID = {
    "latin": "KkPR",
    "greek": "ΔζξΩ",
    "cyrillic": "ШЩИЙ",
    "armenian": "ԱՍԴՂ",
    "georgian": "მშნხ",
}

NEAR = {
    "latin": "WeSQA",
    "greek": "δεςθΣ",
    "cyrillic": "бЦЭЖЧ",
    "armenian": "պէՆԽԶ",
    "georgian": "წგრყლ",
}

OOD_VAL = {"latin": "Fa", "greek": "Γμ", "cyrillic": "ЫЛ", "armenian": "ՔԿ", "georgian": "ფქ"}

OOD_TRAIN = {
    "latin": "GDYJ",
    "greek": "γΞωψ",
    "cyrillic": "ФДЮЪ",
    "armenian": "ԹՌԳՖ",
    "georgian": "ტდთღ",
}


def class_name(character: str) -> str:
    """A name that survives any terminal, file system or LaTeX table: ``Ω`` is ``greek capital omega``."""
    return unicodedata.name(character).replace("LETTER ", "").lower()
