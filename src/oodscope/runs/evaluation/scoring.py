"""From activations to scores: detectors fitted and applied to all sets of a benchmark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe, SetProbe
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError, DetectorError
from oodscope.data.benchmark import Benchmark, Role, Validation
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.jigsaw import jigsaw
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.registry import requested_detector
from oodscope.detectors.tuning import Fitted, fit_detector
from oodscope.execution.memory import PeakMemory
from oodscope.execution.progress import SILENT, Advance, Progress
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.classifier import Classifier
from oodscope.results.scoretable import COLUMNS, ScoreTable
from oodscope.runs.evaluation.extraction import Extraction, FromNetwork

if TYPE_CHECKING:
    import pandas as pd

TESTED: tuple[Role, ...] = ("id_test", "near", "far", "csid")
"""What every protocol may look at."""


def applicable(
    detectors: Iterable[Detector], extraction: Extraction, benchmark: Benchmark
) -> tuple[list[Detector], dict[str, str]]:
    """The detectors that this network and benchmark allow, and why the others do not."""
    asked = list(detectors)
    capabilities = extraction.capabilities(asked, benchmark)
    usable, skipped = [], {}
    for detector in asked:
        reason = detector.unmet_requirement(capabilities)
        if reason:
            skipped[detector.id] = reason
        else:
            usable.append(detector)
    return usable, skipped


def refuse_inapplicable(detectors: Iterable[Detector], extraction: Extraction, benchmark: Benchmark) -> list[Detector]:
    """The detectors, all of which were asked for by name: one that does not apply is an error."""
    usable, refused = applicable(detectors, extraction, benchmark)
    if refused:
        name, reason = next(iter(refused.items()))
        raise DetectorError(f"{name}: {reason}. {extraction.hint}".strip())
    return usable


def score_benchmark(
    extraction: Extraction,
    benchmark: Benchmark,
    detectors: Sequence[Detector],
    *,
    track: Tuning,
    roles: Sequence[Role] = (),
    context: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
) -> ScoreTable:
    """Scores of all test images under all detectors.

    Parameters
    ----------
    extraction : where activations come from.
    track : how hyper-parameters are chosen; see ``evaluate``.
    roles : what is scored beside the test sets, such as ``id_train`` and ``id_val``.
    context : what else the table says of itself; see :class:`ScoreContext`.
    """
    fitted = fit_all(extraction, benchmark, detectors, track, progress)
    probes = [probe for each in fitted for probe in each.detector.probes]
    tested = [
        (role, (role == "id_train" and benchmark.scored_train) or images)
        for role, images in benchmark.members()
        if role in (*TESTED, *roles)
    ]
    found = extraction.extract_sets([(images, probes) for _, images in tested])
    activations = {images.name: each for (_, images), each in zip(tested, found)}
    with progress.stage("score", len(fitted)) as advance:
        columns, costs = _score_all(fitted, activations, advance)
    import pandas as pd  # late: nobody should wait for it who only imports this

    frame = pd.concat(
        [describe_rows(benchmark, role, images, activations[images.name]) for role, images in tested], ignore_index=True
    )
    described = {each.id: each.record() | costs[each.id] for each in fitted}
    classes = {images.name: list(images.class_names) for _, images in tested}
    known: dict[str, Any] = {"detectors": described, "classes": classes, **(context or {})}
    if benchmark.populations:
        known["populations"] = dict(benchmark.populations)
    if "id_train" in roles and benchmark.id_train is not None:
        scored = benchmark.scored_train or benchmark.id_train
        known["training_rows"] = {"fitted": len(benchmark.id_train), "scored": len(scored)}
    return ScoreTable(frame.assign(**columns), known)


def join_scores(tables: Sequence[ScoreTable], detectors: Sequence[str], context: Mapping[str, Any]) -> ScoreTable:
    """One table from tables of the same images under different detectors, whoever made them.

    Parameters
    ----------
    detectors : the order of the columns.
    context : what the whole says of itself, as in ``score_benchmark``; what the parts say of detectors and classes
        is theirs.
    """
    if not tables:
        raise DetectorError("no detector was scored")
    frame = tables[0].frame[list(COLUMNS)]
    for table in tables[1:]:
        if not frame.equals(table.frame[list(COLUMNS)]):
            raise DataError("tables of scores that should be joined hold different images")
    columns = {name: table.frame[name] for table in tables for name in table.detectors}
    missing = [name for name in detectors if name not in columns]
    if missing:
        raise DataError(f"tables of scores that should be joined lack the detector {missing[0]!r}")
    records = {name: record for table in tables for name, record in table.context.detectors.items()}
    known = tables[0].context.model_dump(exclude_unset=True)
    known |= {**context, "detectors": {name: records[name] for name in detectors}}
    return ScoreTable(frame.assign(**{name: columns[name] for name in detectors}), known)


def known_extractions(
    benchmark: Benchmark, detectors: Sequence[Detector], track: Tuning, roles: Sequence[Role] = ()
) -> dict[str, list[Probe]]:
    """What ``score_benchmark`` will extract of each set, by name, as far as is known before a search has chosen."""
    search = track != "default"
    learners = [detector for detector in detectors if detector.learns]
    wanted: dict[str, list[Probe]] = {}

    def want(images: ImageSet | None, probes: Iterable[Probe]) -> None:
        if images is not None:
            wanted.setdefault(images.name, []).extend(probes)

    want(benchmark.id_train, without_sets(_probes_of(_students(learners, benchmark), search)))
    want(benchmark.id_val, without_sets(_probes_of(detectors if search else learners, search)))
    if track == "ood_val":
        want(benchmark.ood_val, without_sets(_probes_of(detectors, search)))
    given = [each for each in detectors if not (search and each.grid)]
    for role, images in benchmark.members():
        if role in (*TESTED, *roles):
            plain = without_sets(_probes_of(given, search=False))
            want((role == "id_train" and benchmark.scored_train) or images, plain)
    return wanted


def fit_scorers(
    classifier: Classifier,
    benchmark: Benchmark,
    detectors: Iterable[str | Detector],
    *,
    tune: Tuning = "default",
    store: ActivationStore | None = None,
    batch_size: int = 256,
    progress: Progress = SILENT,
) -> dict[str, Scorer]:
    """Detectors fitted to ``id_train`` and ``id_val`` of a benchmark, each with the classifier as one scorer.

    They share one pass over the training images. Nothing is calibrated: they are for attacks and comparisons;
    ``fit_scorer`` makes one to deploy. A detector that does not apply is an error. ``tune`` searches hyper-parameters
    as in ``evaluate``.
    """
    asked = [requested_detector(each) if isinstance(each, str) else each for each in detectors]
    if not asked:
        raise DetectorError("no detector given; name some, such as msp and knn")
    classifier = classifier.with_default_transform(benchmark.transform)
    extraction = FromNetwork(classifier, store, batch_size, progress)
    usable = refuse_inapplicable(asked, extraction, benchmark)
    fitted = fit_all(extraction, benchmark, usable, tune, progress)
    return {each.id: Scorer(classifier, each.detector, class_names=benchmark.class_names) for each in fitted}


def fit_all(
    extraction: Extraction, benchmark: Benchmark, detectors: Sequence[Detector], track: Tuning, progress: Progress
) -> list[Fitted]:
    search = track != "default"
    learners = [detector for detector in detectors if detector.learns]
    students = _students(learners, benchmark)
    wanted: dict[str, tuple[ImageSet, Iterable[Probe]]] = {}
    if students and benchmark.id_train is not None:
        probes = _probes_of(students, search)
        # what only held-out images are asked for is not worth passes over all training images
        wanted["train"] = (benchmark.id_train, probes if benchmark.id_val is None else without_sets(probes))
    if (learners or search) and benchmark.id_val is not None:
        wanted["val"] = (benchmark.id_val, _probes_of(detectors if search else learners, search))
    found = dict(zip(wanted, extraction.extract_sets(list(wanted.values()))))
    train, val = found.get("train"), found.get("val")
    validation = _validation(benchmark, val, detectors, extraction, track) if search else None
    fitted = []
    with progress.stage("fit", len(detectors)) as advance:
        for detector in detectors:
            fitted.append(fit_detector(detector.to(extraction.device), train, val, search=validation, track=track))
            advance(1)
    return fitted


def _students(learners: Sequence[Detector], benchmark: Benchmark) -> list[Detector]:
    """Who learns from held-out images sees training images only where there are no others."""
    return [each for each in learners if Needs.TRAIN in each.needs or benchmark.id_val is None]


def check_search(benchmark: Benchmark, track: Tuning) -> None:
    """Refuse a search of parameters for which there are no images."""
    if track == "default":
        return
    if benchmark.id_val is None:
        raise DataError(f"benchmark {benchmark.name!r} has no id_val; without it parameters cannot be searched")
    if track == "ood_val" and benchmark.ood_val is None:
        raise DataError(
            f"benchmark {benchmark.name!r} has no ood_val; search with outliers made from id_val: tune='id_only'"
        )


def _validation(
    benchmark: Benchmark, val: Activations | None, detectors: Sequence[Detector], extraction: Extraction, track: Tuning
) -> Validation[Activations]:
    check_search(benchmark, track)
    assert benchmark.id_val is not None and val is not None, "checked"
    outliers = jigsaw(benchmark.id_val) if track == "id_only" else benchmark.ood_val
    assert outliers is not None, "checked"
    return Validation(val, extraction.extract(outliers, without_sets(_probes_of(detectors, search=True))))


def _probes_of(detectors: Iterable[Detector], search: bool) -> Iterator[Probe]:
    """What these detectors need extracted; in a search, for every value of their grids."""
    for detector in detectors:
        yield from detector.probes
        if search and detector.probes:
            for point in product(*detector.grid.values()):
                yield from clone(detector).set_params(**dict(zip(detector.grid, point))).probes


def without_sets(probes: Iterable[Probe]) -> list[Probe]:
    """The probes whose columns come from each image alone."""
    return [probe for probe in probes if not isinstance(probe, SetProbe)]


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


def describe_rows(benchmark: Benchmark, role: Role, images: ImageSet, activations: Activations) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(
        {
            "sample_id": images.sample_ids(),
            "set": images.name,
            "role": role,
            "label": benchmark.id_labels(role, images),
            "own_class": images.labels,
            "prediction": activations.prediction.cpu().numpy() if "prediction" in activations else UNLABELLED,
            "unit": "all",
        }
    )
