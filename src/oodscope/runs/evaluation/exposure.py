"""Which test images a network has met before: its training images by content, its pretraining by what is known."""

from collections.abc import Iterator

from oodscope.base.errors import UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.corpora import pretraining_overlap
from oodscope.data.imageset import ImageSet
from oodscope.models.classifier.classifier import Classifier

SEEN = "seen_in_training"


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
