"""Audit: images and classes of a benchmark that are where they should not be.

Three questions, asked of every pair of sets: do they share a picture, pixel for pixel? Do they share one that was
compressed, resized, brightened or cropped in between? And is an outlier class an ID class by another name?
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from time import perf_counter

from torch import Tensor, nn

from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import ModelError
from oodscope.data.benchmark import Benchmark
from oodscope.data.similarity.signatures import read_signatures
from oodscope.data.similarity.wordnet import WordNet
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.audit.classes import class_notes, class_pairs
from oodscope.runs.audit.pairs import FoundBy, Member, by_features, by_hash, exact_pairs, least_cosine, near_pairs
from oodscope.runs.audit.run import VERDICTS, Audit, ImagePair


def audit_benchmark(
    benchmark: Benchmark,
    classifier: Classifier | None = None,
    *,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    wordnet: WordNet | None = None,
    progress: Progress = SILENT,
) -> Audit:
    """Look for shared pictures and classes; see ``oodscope.audit``."""
    clock = _Clock()
    notes: list[str] = []
    with clock("read images"):
        members = [
            Member(role, images, read_signatures(images, progress), images.sample_ids())
            for role, images in benchmark.members()
        ]
    with clock("exact"):
        pairs = list(exact_pairs(members))
    with clock("embed"):
        features = _features(classifier, benchmark, store, batch_size, progress)
    with clock("near"):
        pairs += _near(members, features, benchmark.id_test.name, notes, progress)
    with clock("classes"):
        wordnet = wordnet or WordNet.find()
        classes = list(class_pairs(benchmark, wordnet))
        notes += class_notes(benchmark, wordnet)
    flat = sum(int(member.signatures.flat.sum()) for member in members)
    if flat:
        notes.append(f"{flat} images are too plain to be compared by hash; only exact copies of them are found")
    if classifier is None:
        notes.append("no classifier was given: near duplicates were sought by perceptual hash alone")
    grave = list(VERDICTS)
    return Audit(
        benchmark.name,
        benchmark.version,
        sorted(pairs, key=lambda pair: (grave.index(pair.verdict), pair.kind, -pair.similarity)),
        sorted(classes, key=lambda pair: grave.index(pair.verdict)),
        notes,
        {member.images.name: len(member.images) for member in members},
        clock.seconds,
    )


def _near(
    members: list[Member], features: dict[str, Tensor], id_test: str, notes: list[str], progress: Progress
) -> list[ImagePair]:
    found: list[ImagePair] = []
    least = least_cosine(features, id_test) if features else 0.0
    couples = list(combinations_with_replacement(members, 2))
    with progress.stage("compare sets", len(couples)) as advance:
        for first, second in couples:
            candidates: dict[FoundBy, list[tuple[int, int]]] = {}
            hashed = by_hash(first.signatures, second.signatures)
            if hashed is None:
                where = first.images.name if first is second else f"{first.images.name} and {second.images.name}"
                notes.append(f"too many pictures of {where} look alike for near duplicates to stand out")
            else:
                candidates["hash"] = hashed
                if features:
                    one, two = features[first.images.name], features[second.images.name]
                    candidates["embedding"] = by_features(one, two, least)
            found += near_pairs(first, second, candidates)
            advance(1)
    return found


def _features(
    classifier: Classifier | None,
    benchmark: Benchmark,
    store: ActivationStore | None,
    batch_size: int,
    progress: Progress,
) -> dict[str, Tensor]:
    if classifier is None:
        return {}
    if classifier.head is None:
        raise ModelError(f"{classifier.name} gives no features to compare images by: {classifier.head_reason}")
    store = store or ActivationStore()
    features = {}
    for _, images in benchmark.members():
        extracted = store.extract(classifier, images, batch_size=batch_size, progress=progress)
        unit = extracted.features.float().to(classifier.device)
        features[images.name] = unit / unit.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return features


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds[step] = perf_counter() - started


def audit(
    benchmark: Benchmark,
    classifier: Classifier | nn.Module | None = None,
    *,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    progress: Progress = SILENT,
) -> Audit:
    """Look for images and classes of a benchmark that are where they should not be.

    Every pair of sets is compared, and every set with itself: by pixels (whatever kind of file they came from), by
    perceptual hash, and by class name; WordNet separates kinds from classes where it is installed. The audit is a
    run: it is saved, and a report shows it.

    Parameters
    ----------
    classifier : its features find near duplicates that a hash does not: shifted, or cropped by much.

    Examples
    --------
    >>> oods.audit(bench).benchmark
    'tiny'
    """
    if classifier is not None:
        if not isinstance(classifier, Classifier):
            classifier = Classifier(classifier)
        classifier = classifier.with_default_transform(benchmark.transform)
    return audit_benchmark(benchmark, classifier, store=store, batch_size=batch_size, progress=progress)
