"""The road in one call: classifier and benchmark in, verdict out."""

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from time import perf_counter
from typing import Any, get_args

from torch import nn

from oodscope.activations.store.store import PRECISION, ActivationStore
from oodscope.base.errors import DetectorError, OodscopeError, UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.similarity.duplicates import find_duplicates
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.classifier import Classifier
from oodscope.protocols.base import Protocol
from oodscope.protocols.registry import Asked, read_protocols
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord, SetRecord, environment
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.exposure import find_exposure
from oodscope.runs.evaluation.picturing import picture_hardest
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scoring import applicable, network_record, score_benchmark

ALL = "all"


def evaluate(
    classifier: Classifier | nn.Module,
    benchmark: Benchmark,
    detectors: str | Detector | Iterable[str | Detector] = ALL,
    protocols: Asked | Iterable[Asked] = ("standard",),
    *,
    tune: Tuning = "default",
    store: ActivationStore | None = None,
    batch_size: int = 256,
    seed: int = 0,
    recipe: str = "",
    progress: Progress = SILENT,
) -> Result:
    """Judge detectors on a benchmark.

    Every image goes through the network once (plus the passes that a detector's probes declare), and what
    was extracted before is not extracted again.

    Parameters
    ----------
    classifier : a ``Classifier``, or any module, which then sees images through the benchmark's preprocessing.
    detectors : names, detector objects, or ``"all"``: all that apply, the others listed with the reason. A
        detector named explicitly that does not apply is an error.
    protocols : names (``"standard"``, ``"full_spectrum"``, ...), objects with options, or ``{name: {option: value}}``;
        see ``oodscope list protocols``.
    tune : ``"default"`` takes hyper-parameters as given; ``"ood_val"`` searches them on ``id_val`` and ``ood_val``;
        ``"id_only"`` searches them on ``id_val`` and outliers made from it by shuffling tiles. Rows say which,
        and the three are ranked apart.
    store : where activations are kept; by default in the cache.
    batch_size : images per forward pass; the numbers do not depend on it beyond rounding.
    seed : of the bootstrap.
    recipe : how the model was trained, for the record.
    progress : who is told how far the work has come; ``oodscope.ConsoleProgress()`` shows bars.

    Examples
    --------
    >>> result = oods.evaluate(clf, bench, ["msp", "knn"], protocols=["standard", "full_spectrum"])
    >>> result.table("full_spectrum").facts["metric"]
    'auroc'
    """
    started = perf_counter()
    asked = read_protocols(protocols)
    if tune not in get_args(Tuning):
        raise UnknownNameError("tuning track", str(tune), get_args(Tuning), f"Known: {', '.join(get_args(Tuning))}")
    if not isinstance(classifier, Classifier):
        classifier = Classifier(classifier)
    if benchmark.transform is not None:
        classifier = classifier.with_default_transform(benchmark.transform)
    _check_classes(classifier, benchmark)
    prepared = benchmark
    for protocol in asked:
        protocol.check(benchmark)
        prepared = protocol.prepare(prepared, seed)
    chosen, skipped = _choose(detectors, classifier, benchmark)
    exposure = find_exposure(classifier, benchmark)
    notes = _notes(benchmark, chosen)
    store = store or ActivationStore()
    forwarded = store.forwarded
    scores = score_benchmark(
        classifier,
        prepared,
        chosen,
        track=tune,
        store=store,
        batch_size=batch_size,
        roles=[role for protocol in asked for role in protocol.roles],
        context={
            **_context(classifier, benchmark, seed, recipe),
            "exposure": exposure,
            "protocols": {protocol.name: protocol.options for protocol in asked if protocol.options},
        },
        progress=progress,
    )
    notes += [note for protocol in asked for note in protocol.notes(scores)]
    measurements = _measure(asked, scores, progress)
    gallery = picture_hardest(benchmark, scores)
    record = _record(
        classifier,
        benchmark,
        scores,
        protocols=[protocol.name for protocol in asked],
        skipped=skipped,
        notes=notes,
        costs={"seconds": perf_counter() - started},
        forward_images=store.forwarded - forwarded,
    )
    return Result(record, measurements, scores, gallery)


def _choose(
    detectors: str | Detector | Iterable[str | Detector], classifier: Classifier, benchmark: Benchmark
) -> tuple[list[Detector], dict[str, str]]:
    if isinstance(detectors, str) and detectors == ALL:
        asked: list[Detector] = [create_detector(name) for name in DETECTORS]
        return applicable(asked, classifier, benchmark)
    given = [detectors] if isinstance(detectors, (str, Detector)) else list(detectors)
    asked = [create_detector(each) if isinstance(each, str) else each for each in given]
    if not asked:
        raise DetectorError("no detector given; name some, or use 'all'")
    ids = [detector.id for detector in asked]
    for name in ids:
        if ids.count(name) > 1:
            raise DetectorError(f"{name}: asked for twice with the same parameters")
    usable, refused = applicable(asked, classifier, benchmark)
    if refused:
        name, reason = next(iter(refused.items()))
        raise DetectorError(f"{name}: {reason}. {classifier.head_reason or ''}".strip())
    return usable, {}


def _check_classes(classifier: Classifier, benchmark: Benchmark) -> None:
    if classifier.num_classes != len(benchmark.class_names):
        raise OodscopeError(
            f"the classifier knows {classifier.num_classes} classes, benchmark {benchmark.name!r} has "
            f"{len(benchmark.class_names)}; they do not belong together. If it holds some of the classes only, "
            "name those of the classifier (--classes FILE, or benchmark.in_classes)"
        )


def _notes(benchmark: Benchmark, detectors: Sequence[Detector]) -> list[str]:
    notes = [
        f"{len(images.skipped)} unreadable image{'s' * (len(images.skipped) > 1)} of {images.name} left out: "
        + ", ".join(images.skipped[:5])
        + (", ..." if len(images.skipped) > 5 else "")
        for _, images in benchmark.members()
        if images.skipped
    ]
    eager = [detector.id for detector in detectors if Needs.HELD_OUT in detector.needs]
    if eager and benchmark.id_val is None:
        notes.append(
            f"no id_val: {', '.join(eager)} learned from id_train instead of held-out images; no search can run"
        )
    return [*benchmark.notes, *notes, *find_duplicates(benchmark).notes()]


def _measure(protocols: Sequence[Protocol], scores: ScoreTable, progress: Progress) -> Measurements:
    measurements = Measurements()
    with progress.stage("measure", len(protocols)) as advance:
        for protocol in protocols:
            measurements = measurements + protocol.measurements(scores)
            advance(1)
    return measurements


def _context(classifier: Classifier, benchmark: Benchmark, seed: int, recipe: str) -> dict[str, Any]:
    """What every row of the run shares; it travels with the scores, so that they suffice to measure again."""
    return {
        "run": f"{benchmark.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        "benchmark": benchmark.name,
        "benchmark_version": benchmark.version,
        "model": classifier.name,
        "fingerprint": classifier.fingerprint,
        "recipe": recipe,
        "seed": seed,
    }


def _record(classifier: Classifier, benchmark: Benchmark, scores: ScoreTable, **course: Any) -> RunRecord:
    return RunRecord(
        id=scores.context.run,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        sets={
            images.name: SetRecord(
                role=role,
                n=len(images),
                fingerprint=images.fingerprint,
                exposure=scores.context.exposure.get(images.name, ""),
                unreadable=len(images.skipped),
            )
            for role, images in benchmark.members()
        },
        model=classifier.name,
        model_fingerprint=classifier.fingerprint,
        transform=str(classifier.transform),
        head=classifier.describe(),
        **network_record(classifier),
        seed=scores.context.seed or 0,
        precision=PRECISION,
        device=str(classifier.device),
        environment=environment(),
        **course,
    )
