"""From a classifier and a benchmark to scores: one pass per image, every detector from it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError, DetectorError
from oodscope.data.benchmark import Benchmark, Role, Validation
from oodscope.data.imageset import ImageSet
from oodscope.data.jigsaw import jigsaw
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.capabilities import offer_to
from oodscope.detectors.registry import create_detector
from oodscope.detectors.tuning import Fitted, fit_detector
from oodscope.execution.memory import PeakMemory
from oodscope.execution.progress import SILENT, Advance, Progress
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.classifier import Classifier
from oodscope.results.scoretable import ScoreTable


def network_record(classifier: Classifier) -> dict[str, Any]:
    """Preprocessing as settings, architecture, head, and what the weights are known to have seen."""
    transform = classifier.transform
    return {
        "preprocess": transform.model_dump(mode="json") if isinstance(transform, Preprocess) else None,
        "architecture": type(classifier.model).__name__,
        "head_path": classifier.head_path or "",
        "trained_on": [each.name if isinstance(each, ImageSet) else each for each in classifier.trained_on],
        "pretrained_on": list(classifier.pretrained_on),
    }


TESTED: tuple[Role, ...] = ("id_test", "near", "far", "csid")
"""What every protocol may look at."""

Extract = Callable[[ImageSet, Iterable[Probe]], Activations]


def applicable(
    detectors: Iterable[Detector], classifier: Classifier, benchmark: Benchmark
) -> tuple[list[Detector], dict[str, str]]:
    """The detectors that this classifier and benchmark allow, and why the others do not."""
    asked = list(detectors)
    offer = offer_to(asked, classifier, train=benchmark.id_train is not None, held_out=benchmark.id_val is not None)
    usable, skipped = [], {}
    for detector in asked:
        reason = detector.why_not(offer)
        if reason:
            skipped[detector.id] = reason
        else:
            usable.append(detector)
    return usable, skipped


def score_benchmark(
    classifier: Classifier,
    benchmark: Benchmark,
    detectors: Sequence[Detector],
    *,
    track: Tuning,
    store: ActivationStore,
    batch_size: int,
    roles: Sequence[Role] = (),
    context: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
) -> ScoreTable:
    """Scores of all test images under all detectors.

    Parameters
    ----------
    track : how hyper-parameters are chosen; see ``evaluate``.
    store : where activations are read from and kept.
    roles : what is scored beside the test sets, such as ``id_train`` and ``id_val``.
    context : what else the table says of itself; see :class:`ScoreContext`.
    """

    def extract(images: ImageSet, probes: Iterable[Probe]) -> Activations:
        unique = tuple(dict.fromkeys(probes))
        return store.extract(classifier, images, probes=unique, batch_size=batch_size, progress=progress)

    fitted = _fit_all(classifier, benchmark, detectors, track, extract, progress)
    probes = [probe for each in fitted for probe in each.detector.probes]
    tested = [
        (role, (role == "id_train" and benchmark.scored_train) or images)
        for role, images in benchmark.members()
        if role in (*TESTED, *roles)
    ]
    activations = {images.name: extract(images, probes) for _, images in tested}
    with progress.stage("score", len(fitted)) as advance:
        columns, costs = _score_all(fitted, activations, advance)
    frame = pd.concat(
        [_describe(benchmark, role, images, activations[images.name]) for role, images in tested], ignore_index=True
    )
    described = {each.id: each.record() | costs[each.id] for each in fitted}
    classes = {images.name: list(images.class_names) for _, images in tested}
    known: dict[str, Any] = {"detectors": described, "classes": classes, **(context or {})}
    if "id_train" in roles and benchmark.id_train is not None:
        scored = benchmark.scored_train or benchmark.id_train
        known["training_rows"] = {"fitted": len(benchmark.id_train), "scored": len(scored)}
    return ScoreTable(frame.assign(**columns), known)


def fit_scorers(
    classifier: Classifier,
    benchmark: Benchmark,
    detectors: Iterable[str | Detector],
    *,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    progress: Progress = SILENT,
) -> dict[str, Scorer]:
    """Detectors fitted to ``id_train`` and ``id_val`` of a benchmark, each with the classifier as one scorer.

    They share one pass over the training images. Nothing is calibrated: they are for attacks and comparisons;
    ``fit_scorer`` makes one to deploy. A detector that does not apply is an error.
    """
    kept = store or ActivationStore()
    asked = [create_detector(each) if isinstance(each, str) else each for each in detectors]
    if not asked:
        raise DetectorError("no detector given; name some, such as msp and knn")
    classifier = classifier.with_default_transform(benchmark.transform)
    usable, refused = applicable(asked, classifier, benchmark)
    if refused:
        name, reason = next(iter(refused.items()))
        raise DetectorError(f"{name}: {reason}. {classifier.head_reason or ''}".strip())

    def extract(images: ImageSet, probes: Iterable[Probe]) -> Activations:
        unique = tuple(dict.fromkeys(probes))
        return kept.extract(classifier, images, probes=unique, batch_size=batch_size, progress=progress)

    fitted = _fit_all(classifier, benchmark, usable, "default", extract, progress)
    return {each.id: Scorer(classifier, each.detector, class_names=benchmark.class_names) for each in fitted}


def _fit_all(
    classifier: Classifier,
    benchmark: Benchmark,
    detectors: Sequence[Detector],
    track: Tuning,
    extract: Extract,
    progress: Progress,
) -> list[Fitted]:
    search = track != "default"
    learners = [detector for detector in detectors if detector.learns]
    # who learns from held-out images sees training images only where there are no others
    students = [each for each in learners if Needs.TRAIN in each.needs or benchmark.id_val is None]
    train = val = None
    if students and benchmark.id_train is not None:
        train = extract(benchmark.id_train, _probes_of(students, search))
    if (learners or search) and benchmark.id_val is not None:
        val = extract(benchmark.id_val, _probes_of(detectors if search else learners, search))
    validation = _validation(benchmark, val, detectors, extract, track) if search else None
    fitted = []
    with progress.stage("fit", len(detectors)) as advance:
        for detector in detectors:
            fitted.append(fit_detector(detector.to(classifier.device), train, val, search=validation, track=track))
            advance(1)
    return fitted


def _validation(
    benchmark: Benchmark, val: Activations | None, detectors: Sequence[Detector], extract: Extract, track: Tuning
) -> Validation[Activations]:
    if benchmark.id_val is None or val is None:
        raise DataError(f"benchmark {benchmark.name!r} has no id_val; without it parameters cannot be searched")
    outliers = jigsaw(benchmark.id_val) if track == "id_only" else benchmark.ood_val
    if outliers is None:
        raise DataError(
            f"benchmark {benchmark.name!r} has no ood_val; search with outliers made from id_val: tune='id_only'"
        )
    return Validation(val, extract(outliers, _probes_of(detectors, search=True)))


def _probes_of(detectors: Iterable[Detector], search: bool) -> Iterator[Probe]:
    """What these detectors need extracted; in a search, for every value of their grids."""
    for detector in detectors:
        yield from detector.probes
        if search and detector.probes:
            for point in product(*detector.grid.values()):
                yield from clone(detector).set_params(**dict(zip(detector.grid, point))).probes


def _score_all(
    fitted: Sequence[Fitted], activations: Mapping[str, Activations], advance: Advance
) -> tuple[dict[str, NDArray[np.float64]], dict[str, dict[str, float | None]]]:
    columns: dict[str, NDArray[np.float64]] = {}
    costs: dict[str, dict[str, float | None]] = {}
    images = sum(len(each) for each in activations.values())
    for each in fitted:
        started = perf_counter()
        with PeakMemory(str(each.detector.device)) as memory:
            scores = [each.detector.score(part).cpu().numpy() for part in activations.values()]
        seconds = perf_counter() - started
        columns[each.id] = np.concatenate(scores).astype(np.float64)
        peaks = [peak for peak in (each.fit_mib, memory.mib) if peak is not None]
        costs[each.id] = {
            "microseconds_per_image": 1e6 * seconds / images,
            "peak_mib": max(peaks, default=None),
        }
        advance(1)
    return columns, costs


def _describe(benchmark: Benchmark, role: Role, images: ImageSet, activations: Activations) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sample_id": images.sample_ids(),
            "set": images.name,
            "role": role,
            "label": benchmark.id_labels(role, images),
            "own_class": images.labels,
            "prediction": activations.prediction.cpu().numpy(),
            "unit": "all",
        }
    )
