"""Outlier classes that are ID classes by another name: by their words, and by what WordNet knows of them.

An image of a class that the classifier was trained on is not an outlier; NINCO (Bitterwolf et al., ICML 2023) found
such images in most test sets of ImageNet.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oodscope.data.benchmark import ID_ROLES, Benchmark, Role
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.wordnet import WordNet, singulars

Relation = Literal["same name", "same meaning", "kind of", "broader than", "perhaps"]


@dataclass(frozen=True)
class Overlap:
    """An outlier class and the ID class that it meets.

    Parameters
    ----------
    relation : ``same name``; ``same meaning`` (synonyms); ``kind of``: the outlier class lies inside the ID class;
        ``broader than``: it holds the ID class and may hold others; ``perhaps``: only a rarer meaning of a name is
        related, or only the last words of the names agree.
    detail : why, for a reader.
    """

    ood_class: str
    id_class: str
    relation: Relation
    detail: str


def overlapping_classes(
    id_classes: Sequence[str], ood_classes: Sequence[str], wordnet: WordNet | None
) -> list[Overlap]:
    """The strongest overlap of each outlier class with each ID class that it meets.

    A name may list synonyms after commas, as ImageNet's do, and may be a WordNet id.

    Parameters
    ----------
    wordnet : without it only the words of the names are compared.
    """
    found = []
    for ood_class in ood_classes:
        for id_class in id_classes:
            candidates = [*_by_words(ood_class, id_class)]
            if wordnet is not None:
                candidates += _by_meaning(ood_class, id_class, wordnet)
            if candidates:
                found.append(min(candidates, key=lambda overlap: _STRENGTH.index(overlap.relation)))
    return found


_STRENGTH: tuple[Relation, ...] = ("same name", "same meaning", "kind of", "broader than", "perhaps")


def _by_words(ood_class: str, id_class: str) -> Iterator[Overlap]:
    for mine in _synonyms(ood_class):
        for theirs in _synonyms(id_class):
            one, two = words_of(mine), words_of(theirs)
            if not one or not two:
                continue
            if _same(one, two):
                yield Overlap(ood_class, id_class, "same name", " ".join(one))
            elif _ends_with(one, two):
                yield Overlap(ood_class, id_class, "perhaps", f"{' '.join(one)!r} ends with {' '.join(two)!r}")


def _by_meaning(ood_class: str, id_class: str, wordnet: WordNet) -> Iterator[Overlap]:
    mine, theirs = _meanings(ood_class, wordnet), _meanings(id_class, wordnet)
    for ood, ood_first in mine:
        for id_, id_first in theirs:
            relation: Relation
            if ood == id_:
                relation = "same meaning"
            elif id_ in wordnet.broader(ood):
                relation = "kind of"
            elif ood in wordnet.broader(id_):
                relation = "broader than"
            else:
                continue
            verb = "is" if relation == "same meaning" else relation
            detail = f"{wordnet.words(ood)[0]} {verb} {wordnet.words(id_)[0]}"
            if ood_first and id_first:
                yield Overlap(ood_class, id_class, relation, f"WordNet: {detail}")
            else:
                yield Overlap(ood_class, id_class, "perhaps", f"WordNet, in a rarer meaning: {detail}")


def _meanings(name: str, wordnet: WordNet) -> list[tuple[int, bool]]:
    """What the first synonym known to WordNet can mean, and whether that is its commonest meaning."""
    words = [word for word in _synonyms(name) if len(word) > 1]
    known = next((found for word in words if (found := wordnet.meanings(word))), [])
    return [(meaning, place == 0) for place, meaning in enumerate(known)]


def _synonyms(name: str) -> list[str]:
    return [part.strip() for part in name.split(",") if part.strip()]


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: ``SeaLion_2`` as (sea, lion, 2). A single character stays as it is."""
    if len(name) == 1:
        return (name,)
    return tuple(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def clashing_names(benchmark: Benchmark) -> Iterator[tuple[Role, ImageSet, list[str]]]:
    """OOD sets that are called like an ID class, or have classes that are; classes that are only numbered are none."""
    known = {words_of(name) for name in benchmark.class_names}
    for role, images in benchmark.members():
        if role in ID_ROLES:
            continue
        numbered = images.class_names == tuple(str(number) for number in range(len(images.class_names)))
        present = () if numbered else (images.class_names[label] for label in np.unique(images.labels) if label >= 0)
        if names := [name for name in dict.fromkeys((*present, images.name)) if words_of(name) in known]:
            yield role, images, names


def _same(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether the words agree, the last one up to its plural."""
    return one[:-1] == two[:-1] and not {one[-1], *singulars(one[-1])}.isdisjoint({two[-1], *singulars(two[-1])})


def _ends_with(longer: tuple[str, ...], shorter: tuple[str, ...]) -> bool:
    """Whether a name is another with words before it, as English names kinds: sports car, car."""
    return len(longer) > len(shorter) and _same(longer[-len(shorter) :], shorter)
