"""Which characters play which role.

Five scripts hold the in-distribution classes, four characters each, some of them easily confused (Ш and Щ, მ
and შ). Held-out characters of the same scripts are near-OOD: a detector has to notice a new letter, not a new
alphabet. The characters behind ``ood_val`` and ``ood_train`` appear nowhere else, so that tuning and outlier
exposure learn nothing about the letters a detector is judged on.

Twins across scripts (Latin A, Greek Α, Cyrillic А) never stand on both sides: a held-out letter must not be a
picture of an ID class.
"""

import unicodedata

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
