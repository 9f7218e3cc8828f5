"""Exposure: which test images a network has met before. A property of (model, set), shown in every row.

Images that a network was trained on look more in-distribution than any other: with training rows as ID test set,
MSP against CIFAR-100 rises from .874 to .943. So what is known is said, not judged.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from oodscope.base.errors import UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.corpora import pretraining_overlap
from oodscope.data.imageset import ImageSet
from oodscope.models.classifier.classifier import Classifier
from oodscope.results.measurement import MEAN, Measurement
from oodscope.results.measurements import Measurements
from oodscope.results.scoretable import ScoreTable

SEEN = "seen_in_training"

_SPANNED = {
    "label_shift": ("near", "far"),
    "input_shift": ("id_test", "csid"),
    "all": ("id_test", "csid", "near", "far"),
}
"""Groups that take the sets of several roles together."""


def find_exposure(classifier: Classifier, benchmark: Benchmark) -> dict[str, str]:
    """What is known of each set that the network has met before; sets of which nothing is known are left out.

    The images of ``classifier.trained_on`` are looked for in every test set by content, so a training image inside
    a test set is found wherever it came from. ``classifier.pretrained_on`` is compared with the table of known facts.
    """
    seen = {digest for images in _trained_on(classifier, benchmark) for digest in images.digests()}
    found = {}
    for role, images in benchmark.members():
        if role in ("id_test", "near", "far", "csid"):
            parts = [_share(seen, images), pretraining_overlap(classifier.pretrained_on, images.name)]
            if said := ", ".join(filter(None, parts)):
                found[images.name] = said
    return found


def id_test_alone(scores: ScoreTable, row: Measurement) -> list[str]:
    """The sets that count as in-distribution in most protocols."""
    return scores.sets("id_test")


def flag_exposure(
    measurements: Measurements, scores: ScoreTable, negatives: Callable[[ScoreTable, Measurement], Sequence[str]]
) -> Measurements:
    """The same rows, each with what is known of the sets that it was measured on.

    Parameters
    ----------
    negatives : the sets whose images counted as in-distribution in a row.
    """
    known: Mapping[str, str] = scores.metadata.get("exposure", {})
    if not known:
        return measurements
    members = {name: [name] for name in scores.sets()}
    groups = {
        group: [name for role in _SPANNED.get(group, (group,)) for name in scores.sets(role)]
        for group in measurements.distinct("group")
    }

    def said(row: Measurement) -> str:
        below = negatives(scores, row)
        # a set, the sets of a group, or several in-distribution sets together, such as "pooled"
        own = groups[row.group] if row.set == MEAN else members.get(row.set, below)
        return _said(dict.fromkeys([*(below if row.detector else ()), *own]), known)

    return Measurements(replace(row, exposure=said(row)) for row in measurements)


def _said(names: Iterable[str], known: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {known[name]}" for name in names if name in known)


def _trained_on(classifier: Classifier, benchmark: Benchmark) -> Iterator[ImageSet]:
    for given in classifier.trained_on:
        if isinstance(given, ImageSet):
            yield given
            continue
        named = [images for role, images in benchmark.members() if given in (role, images.name)]
        if not named:
            known = dict.fromkeys(name for role, images in benchmark.members() for name in (role, images.name))
            raise UnknownNameError("set in trained_on", given, known, f"Known: {', '.join(known)}")
        yield from named


def _share(seen: set[bytes], images: ImageSet) -> str:
    count = sum(digest in seen for digest in images.digests()) if seen else 0
    if count == len(images):
        return SEEN
    return f"{count} of {len(images)} images seen in training" if count else ""
