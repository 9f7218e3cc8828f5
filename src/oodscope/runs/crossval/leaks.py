"""What a network has met before its folds were drawn: refused where it is the folded images or their classes.

A frozen network that was trained on the images it embeds has seen every test fold: its features separate ID from OOD
by memory, and no fold can show it. The same holds, weaker, for the classes.
"""

from collections.abc import Iterable, Sequence

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.corpora import get_corpus, pretraining_overlap
from oodscope.data.imageset import ImageSet
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.crossval.draws import Pair, distinct_sets


def find_leaks(classifier: Classifier, pairs: Sequence[Pair]) -> list[str]:
    """Each way in which the network is known to have been trained on folded images or on their classes.

    ``classifier.trained_on`` is compared with both sides of every pair by name, by content and by class name; names
    that are mere numbers say nothing. ``classifier.pretrained_on`` is compared with the ID side: outliers of a
    corpus are exposure (``find_pair_exposure``), not a leak.
    """
    folded = distinct_sets(pairs)
    names = [images.name for images in folded]
    for given in classifier.trained_on:
        if isinstance(given, str) and given not in names:
            raise UnknownNameError("set in trained_on", given, names, f"Known: {', '.join(names)}")
    leaks = [
        f"{classifier.name} was trained on {said}"
        for given in classifier.trained_on
        for images in folded
        if (said := _shared(given, images))
    ]
    for images in {pair.id_set.name: pair.id_set for pair in pairs}.values():
        closed = [name for name in classifier.pretrained_on if not get_corpus(name).open_ended]
        if said := pretraining_overlap(closed, images.name):
            leaks.append(f"{classifier.name} knows the classes of {images.name} ({said})")
    return leaks


def refuse_leaks(leaks: Sequence[str]) -> None:
    """Stop where anything was found."""
    if leaks:
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        raise DataError(
            f"{leaks[0]}{more}: its embeddings have seen the test folds. Take a network trained on other data, train "
            "one per fold, or allow the leak (allow_leak=True, --allow-leak), and every page will say so"
        )


def find_pair_exposure(classifier: Classifier, pairs: Sequence[Pair]) -> dict[str, str]:
    """What is known of each pair whose outliers, or whose ID classes, lie in the network's pretraining."""
    found = {}
    for pair in pairs:
        parts = [
            (images.name, pretraining_overlap(classifier.pretrained_on, images.name))
            for images in (pair.id_set, pair.ood_set)
        ]
        if said := "; ".join(f"{name}: {what}" for name, what in parts if what):
            found[pair.name] = said
    return found


def _shared(given: ImageSet | str, images: ImageSet) -> str:
    """What a training set and a folded set have in common, in words; empty if nothing is known."""
    if isinstance(given, str):
        return images.name if given == images.name else ""
    seen = set(given.digests())
    if count := sum(digest in seen for digest in images.digests()):
        return f"{count} of the {len(images)} images of {images.name}"
    common = _informative(given.class_names) & _informative(images.class_names)
    return f"{len(common)} classes of {images.name}, such as {min(common)!r}" if common else ""


def _informative(names: Iterable[str]) -> set[str]:
    """Class names without case and separators; numbers are left out, as any set may count its classes."""
    plain = {"".join(character for character in name.lower() if character.isalnum()) for name in names}
    return {name for name in plain if name and not name.isdigit()}
