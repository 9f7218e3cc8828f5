"""Outlier classes that meet ID classes."""

from collections.abc import Iterator

import numpy as np

from oodscope.data.benchmark import ID_ROLES, Benchmark
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.data.similarity.wordnet import WordNet
from oodscope.protocols.audit.verdicts import verdict_of_class
from oodscope.results.audit import ClassPair


def class_pairs(benchmark: Benchmark, wordnet: WordNet | None) -> Iterator[ClassPair]:
    """Every class of an outlier set, present in it, that meets an ID class."""
    known = named_classes(benchmark.id_test, benchmark.class_names)
    for role, images in benchmark.members():
        if role in ID_ROLES:
            continue
        present = np.bincount(images.labels[images.labels != UNLABELLED], minlength=len(images.class_names))
        counts = {name: int(count) for name, count in zip(images.class_names, present) if count}
        for found in overlapping_classes(known, named_classes(images, tuple(counts)), wordnet):
            yield ClassPair(
                verdict_of_class(role, found.relation),
                images.name,
                role,
                found.ood_class,
                found.id_class,
                found.relation,
                found.detail,
                counts[found.ood_class],
            )


def class_notes(benchmark: Benchmark, wordnet: WordNet | None) -> list[str]:
    """What could not be compared."""
    notes = []
    if wordnet is None:
        notes.append(
            "WordNet was not found, so only the words of class names were compared; install wordnet-base, or let "
            "OODSCOPE_WORDNET name its folder"
        )
    if not named_classes(benchmark.id_test, benchmark.class_names):
        return [*notes, "the ID classes have numbers for names: no class was compared"]
    outliers = [images for role, images in benchmark.members() if role not in ID_ROLES]
    nameless = [images.name for images in outliers if not named_classes(images, images.class_names)]
    return [*notes, *(f"{name} has no class names, so its classes were not compared" for name in nameless)]


def named_classes(images: ImageSet, names: tuple[str, ...]) -> list[str]:
    """The classes whose names say something: a set without names calls its classes 0, 1, 2."""
    numbers = tuple(str(number) for number in range(len(images.class_names)))
    return [] if images.class_names == numbers else list(names)
