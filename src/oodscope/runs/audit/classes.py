"""Outlier classes that meet ID classes."""

from collections.abc import Iterator

import numpy as np

from oodscope.data.benchmark import ID_ROLES, Benchmark
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.data.similarity.wordnet import WordNet
from oodscope.runs.audit.run import ClassPair, Verdict

_TESTED = ("id_test", "csid", "near", "far")
_TUNED_ON = {"id_val": ("id_test", "csid"), "ood_val": ("near", "far")}
_LEARNT_FROM = {"id_train": ("id_test", "csid"), "ood_train": ("near", "far")}


def verdict_of(first: str, second: str, *, exact: bool) -> Verdict:
    """The verdict on a picture that two roles share.

    Fatal: validation and test of one side share it, pixel for pixel. Contamination: it is an outlier here and
    in-distribution there; or it is tested and was learnt from; or a near duplicate of it was tuned on. All else is
    worth a note: repeats inside a set, or in two sets of one side.
    """
    pairs = ((first, second), (second, first))
    if any(judged in _TUNED_ON.get(tuned, ()) for tuned, judged in pairs):
        return "fatal" if exact else "contamination"
    if any(judged in _LEARNT_FROM.get(learnt, ()) for learnt, judged in pairs):
        return "contamination"
    return "contamination" if (first in ID_ROLES) != (second in ID_ROLES) else "note"


def verdict_of_class(role: str, relation: str) -> Verdict:
    """The verdict on an outlier class that meets an ID class: grave if its images are ID and are tested."""
    return "contamination" if role in _TESTED and relation in ("same name", "same meaning", "kind of") else "note"


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
