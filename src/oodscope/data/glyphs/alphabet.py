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
    "latin": "gqKk",
    "greek": "ΔζξΩ",
    "cyrillic": "ШЩИЙ",
    "armenian": "ԱՍԴՂ",
    "georgian": "მშნხ",
}

NEAR_SAME_SCRIPTS = {'latin': 'ABCDEFGHIJLMNOPQRSTUVWXYZabcdefhijlmnoprstuvwxyz', 'greek': 'ΑΒΓΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨαβγδεηθικλμνοπρςστυφχψω', 'cyrillic': 'АБВГДЕЖЗКЛМНОПРСТУФХЦЧЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя', 'armenian': 'ԲԳԵԶԷԸԹԺԻԼԽԾԿՀՁՃՄՅՆՇՈՉՊՋՌՎՏՐՑՒՓՔՕՖաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ', 'georgian': 'აბგდევზთიკლოპჟრსტუფქღყჩცძწჭჯჰ'}

NEAR_NEW_SCRIPTS = {'hebrew': 'אבגדהוזחטיךכלםמןנסעףפץצקרשת', 'tifinagh': 'ⴰⴱⴲⴳⴴⴵⴶⴷⴸⴹⴺⴻⴼⴽⴾⴿⵀⵁⵂⵃⵄⵅⵆⵇⵈⵉⵊⵋⵌⵍⵎⵏⵐⵑⵒⵓⵔⵕⵖ', 'nko': 'ߊߋߌߍߎߏߐߑߒߓߔߕߖߗߘߙߚߛߜߝߞߟߠߡߢߣߤߥߦߧ'}

OOD_VAL = {"latin": "Fa", "greek": "Γμ", "cyrillic": "ЫЛ", "armenian": "ՔԿ", "georgian": "ფქ"}

OOD_TRAIN = {
    "latin": "eDYJ",
    "greek": "γΞωδ",
    "cyrillic": "ФДЭЪ",
    "armenian": "ԶՌԳՖ",
    "georgian": "გტდწ",
}


def class_name(character: str) -> str:
    """A name that survives any terminal, file system or LaTeX table: ``Ω`` is ``greek capital omega``."""
    return unicodedata.name(character).replace("LETTER ", "").lower()
