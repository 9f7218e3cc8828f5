"""From activations to a result: choose detectors, score, measure, record. Evaluations of every origin share it."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from time import perf_counter
from typing import Any, get_args

from oodscope.base.errors import DetectorError, UnknownNameError
from oodscope.base.files import plain_name
from oodscope.data.benchmark import Benchmark
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.registry import DETECTORS, create_detector, requested_detector
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.workers import worker_session
from oodscope.metrics.interval import Intervals, check_intervals
from oodscope.metrics.metric import Tuning
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord, SetRecord, command_line, environment
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.alarms import name_clashes
from oodscope.runs.evaluation.extraction import Extraction
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scoring import applicable, check_search, refuse_inapplicable, score_benchmark

ALL = "all"

AskedDetectors = str | Detector | Iterable[str | Detector]
"""Detectors as people ask for them: a name, an object, several of them, or ``"all"`` that apply."""


def check_tuning(tune: str) -> None:
    """Refuse a tuning track that nobody knows."""
    if tune not in get_args(Tuning):
        raise UnknownNameError("tuning track", str(tune), get_args(Tuning), f"Known: {', '.join(get_args(Tuning))}")


def check_roles(benchmark: Benchmark, protocols: Sequence[Protocol], tune: Tuning) -> None:
    """Refuse a benchmark that lacks the images of a protocol or of a search, before a network is trained for it."""
    for protocol in protocols:
        protocol.check(benchmark)
    check_search(benchmark, tune)


@worker_session()
def evaluate_extraction(
    extraction: Extraction,
    benchmark: Benchmark,
    detectors: AskedDetectors,
    protocols: Sequence[Protocol],
    *,
    tune: Tuning,
    seed: int,
    recipe: str,
    intervals: Intervals = "full",
    skip_inapplicable: bool = False,
    score: Callable[..., ScoreTable] = score_benchmark,
    progress: Progress = SILENT,
) -> Result:
    """The result of detectors on a benchmark, wherever its activations come from; see ``evaluate``.

    Parameters
    ----------
    score : where scores come from; see ``score_benchmark``.
    """
    started = perf_counter()
    check_tuning(tune)
    check_intervals(intervals)
    check_roles(benchmark, protocols, tune)
    prepared = benchmark
    for protocol in protocols:
        prepared = protocol.prepare(prepared, seed)
    chosen, skipped = choose_detectors(detectors, extraction, benchmark, skip_inapplicable=skip_inapplicable)
    exposure = extraction.exposure(benchmark)
    with progress.stage("compare images", 1) as advance:
        notes = [*benchmark.notes, *extraction.notes(benchmark), *_held_out_notes(benchmark, chosen)]
        advance(1)
    clashes = name_clashes(benchmark)
    scores = score(
        extraction,
        prepared,
        chosen,
        track=tune,
        roles=[role for protocol in protocols for role in protocol.roles],
        context={
            **run_context(benchmark.name, benchmark.version, extraction.name, protocols, seed, recipe),
            "intervals": intervals,
            "fingerprint": extraction.fingerprint,
            "exposure": exposure,
        },
        progress=progress,
    )
    notes += [*extraction.notes_afterwards(), *(note for protocol in protocols for note in protocol.notes(scores))]
    notes = [*extraction.alarms(benchmark, scores), *clashes, *notes]
    measurements = measure_all(protocols, scores, progress)
    with progress.stage("picture", 1) as advance:
        gallery = extraction.gallery(benchmark, scores)
        advance(1)
    record = record_of(
        scores,
        sets={
            images.name: SetRecord(
                role=role,
                n=len(images),
                fingerprint=images.fingerprint,
                exposure=exposure.get(images.name, ""),
                unreadable=len(images.skipped),
            )
            for role, images in benchmark.members()
        },
        device=str(extraction.device),
        protocols=[protocol.name for protocol in protocols],
        skipped=skipped,
        notes=notes,
        costs={"seconds": perf_counter() - started},
        forward_images=extraction.forwarded,
        **extraction.record(),
    )
    return Result(record, measurements, scores, gallery)


def choose_detectors(
    detectors: AskedDetectors, extraction: Extraction, benchmark: Benchmark, *, skip_inapplicable: bool = False
) -> tuple[list[Detector], dict[str, str]]:
    """The detectors that are asked for, and why others of ``all``, or of those that may be skipped, do not apply."""
    if isinstance(detectors, str) and detectors == ALL:
        return applicable([create_detector(name) for name in DETECTORS], extraction, benchmark)
    given = [detectors] if isinstance(detectors, (str, Detector)) else list(detectors)
    asked = [requested_detector(each) if isinstance(each, str) else each for each in given]
    if not asked:
        raise DetectorError("no detector given; name some, or use 'all'")
    ids = [detector.id for detector in asked]
    for name in ids:
        if ids.count(name) > 1:
            raise DetectorError(f"{name}: asked for twice with the same parameters")
    if not skip_inapplicable:
        return refuse_inapplicable(asked, extraction, benchmark), {}
    usable, skipped = applicable(asked, extraction, benchmark)
    if not usable:
        name, reason = next(iter(skipped.items()))
        raise DetectorError(f"none of the detectors applies. {name}: {reason}. {extraction.hint}".strip())
    return usable, skipped


def _held_out_notes(benchmark: Benchmark, detectors: Sequence[Detector]) -> list[str]:
    eager = [detector.id for detector in detectors if Needs.HELD_OUT in detector.needs]
    if not eager or benchmark.id_val is not None:
        return []
    return [f"no id_val: {', '.join(eager)} learned from id_train instead of held-out images; no search can run"]


def run_context(
    benchmark: str, benchmark_version: str, model: str, protocols: Sequence[Protocol], seed: int, recipe: str
) -> dict[str, Any]:
    """What every row of the run shares; it travels with the scores, so that they suffice to measure again."""
    name = plain_name(benchmark, "the benchmark's name")  # it begins the folder of the run
    return {
        "run": f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        "benchmark": benchmark,
        "benchmark_version": benchmark_version,
        "model": model,
        "recipe": recipe,
        "seed": seed,
        "protocols": {protocol.name: protocol.options for protocol in protocols if protocol.options},
    }


def measure_all(protocols: Sequence[Protocol], scores: ScoreTable, progress: Progress = SILENT) -> Measurements:
    """Every number of every protocol, from the scores alone."""
    measurements = Measurements()
    with progress.stage("measure", len(protocols)) as advance:
        for protocol in protocols:
            measurements = measurements + protocol.measurements(scores)
            advance(1)
    return measurements


def record_of(scores: ScoreTable, *, sets: Mapping[str, SetRecord], **known: Any) -> RunRecord:
    """The record of the run that made these scores: what they say of themselves, and what else is known."""
    context = scores.context
    return RunRecord(
        id=context.run,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=context.benchmark,
        benchmark_version=context.benchmark_version,
        sets=dict(sets),
        model=context.model,
        model_fingerprint=context.fingerprint,
        seed=context.seed or 0,
        environment=environment(),
        **known,
    )
