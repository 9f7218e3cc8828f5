"""Draw streams from the sets of a benchmark and score them, image by image in their order."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from oodscope.base.errors import DataError, DetectorError, UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.detectors.base import Detector
from oodscope.detectors.streaming import StreamDetector, create_entry
from oodscope.execution.progress import SILENT, Progress
from oodscope.results.record import SetRecord
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.extraction import Extraction
from oodscope.runs.evaluation.pipeline import record_of, run_context
from oodscope.runs.evaluation.scoring import fit_all, refuse_inapplicable
from oodscope.runs.stream.drawing import HELD_OUT, Arrivals, Pool
from oodscope.runs.stream.protocol import SCHEDULES, TRANSDUCTIVE, StreamProtocol, unit_of
from oodscope.runs.stream.run import StreamRun
from oodscope.runs.stream.schedule import Schedule, default_schedules

if TYPE_CHECKING:
    import pandas as pd


def stream(
    extraction: Extraction,
    benchmark: Benchmark,
    detectors: Iterable[str | Detector],
    schedules: Sequence[Schedule] | None = None,
    *,
    draws: int = 50,
    on: Sequence[str] = (),
    baseline: str = "",
    protocol: StreamProtocol | None = None,
    seed: int = 0,
    recipe: str = "",
    progress: Progress = SILENT,
) -> StreamRun:
    """Detectors on streams drawn from ``id_test`` and each OOD set; constant ones are baselines.

    All entries see the same streams, so that differences between them are paired. Before a stream every entry scores
    ``id_val``, in one seeded order and in batches of the schedule, which fixes its threshold; then its memory is
    emptied.

    Parameters
    ----------
    detectors : names of stream detectors or of others, or objects, not fitted.
    schedules : one of each kind unless given.
    draws : streams of each schedule and OOD set; images and order are drawn anew for each.
    on : OOD sets by name; all near and far sets unless given.
    baseline : id of the detector that gains are measured against; the first constant one unless given.
    seed : of all draws.
    """
    started, protocol = perf_counter(), protocol or StreamProtocol()
    plans = tuple(schedules or default_schedules())
    check_streams(plans, draws)
    entries = [create_entry(each) if isinstance(each, str) else each for each in detectors]
    chosen_baseline = _baseline(entries, baseline)
    sets = _sets(benchmark, on)
    _check_pools(benchmark, plans, sets, protocol)
    opened = _Opened(extraction, benchmark, entries, any(plan.drift for plan in plans), progress)
    drawn, fitted = _draw_all(opened, sets, plans, draws, seed, progress), opened.fitted
    context = {
        **run_context(benchmark.name, benchmark.version, extraction.name, [protocol], seed, recipe),
        "fingerprint": extraction.fingerprint,
        "exposure": extraction.exposure(benchmark),
        "detectors": {each.id: each.record() for each in fitted},
        SCHEDULES: [asdict(plan) for plan in plans],
        TRANSDUCTIVE: [each.id for each in fitted if isinstance(each.detector, StreamDetector)],
    }
    scores = ScoreTable(drawn, context)
    measurements = protocol.measurements(scores)
    record = record_of(
        scores,
        sets={
            images.name: SetRecord(role=role, n=len(images), fingerprint=images.fingerprint)
            for role, images in benchmark.members()
        },
        device=str(extraction.device),
        protocols=[protocol.name],
        notes=[*benchmark.notes, *extraction.notes(benchmark)],
        costs={"seconds": perf_counter() - started},
        forward_images=extraction.forwarded,
        **extraction.record(),
    )
    return StreamRun(record, measurements, scores, chosen_baseline)


def check_streams(schedules: Sequence[Schedule], draws: int) -> None:
    """Refuse schedules that cannot be told apart, and a single draw, which has no spread."""
    names = [each.name for each in schedules]
    if twice := {name for name in names if names.count(name) > 1}:
        raise DataError(f"two schedules are called {min(twice)!r}; they differ in nothing that tables show")
    if draws < 2:
        raise DataError(f"a schedule is drawn 2 times or more, since intervals are over draws; it is {draws}")
    for each in schedules:
        each.foreign(0)  # says what does not fit


def _draw_all(
    opened: "_Opened", sets: Sequence[ImageSet], plans: Sequence[Schedule], draws: int, seed: int, progress: Progress
) -> "pd.DataFrame":
    """The rows of all streams, and of ``id_val`` once for each schedule."""
    import pandas as pd

    pools, fitted, frames = opened.pools, opened.fitted, []
    order = np.random.default_rng(seed).permutation(len(pools[HELD_OUT]))
    before = Arrivals(pools, np.full(len(order), HELD_OUT), order)
    for number, plan in enumerate(plans):
        frames.append(before.scored(fitted, plan.batch).assign(unit=str(number)))
    with progress.stage("stream", len(sets) * len(plans) * draws) as advance:
        for images in sets:
            every = {**pools, "ood": opened.pool([images])}
            sizes = {"known": len(every["id"]), "foreign": len(images), "shifted": len(every.get("csid", ()))}
            for number, plan in enumerate(plans):
                for draw in range(draws):
                    drawn, rows = plan.draw(draws * seed + draw, **sizes)
                    scored = Arrivals(every, drawn, rows).scored(fitted, plan.batch)
                    frames.append(scored.assign(unit=unit_of(number, images.name, draw)))
                    advance(1)
    return pd.concat(frames, ignore_index=True)


class _Opened:
    """The fitted entries, and the pools that every stream shares."""

    def __init__(
        self,
        extraction: Extraction,
        benchmark: Benchmark,
        entries: Sequence[Detector],
        drifts: bool,
        progress: Progress,
    ) -> None:
        self._extraction, self._benchmark = extraction, benchmark
        usable = refuse_inapplicable(entries, extraction, benchmark)
        self.fitted = fit_all(extraction, benchmark, usable, "default", progress)
        assert benchmark.id_val is not None, "checked"
        self.pools = {"id": self.pool([benchmark.id_test]), HELD_OUT: self.pool([benchmark.id_val])}
        if drifts:
            self.pools["csid"] = self.pool(benchmark.csid)

    def pool(self, images: Sequence[ImageSet]) -> Pool:
        return Pool(self._benchmark, images, self._extraction, self.fitted)


def _baseline(entries: Sequence[Detector], asked: str) -> str:
    ids = [each.id for each in entries]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise DetectorError(f"{min(twice)}: asked for twice with the same parameters")
    constant = [each.id for each in entries if not isinstance(each, StreamDetector)]
    if not constant:
        raise DetectorError("a stream needs a constant detector to compare with; name one more, such as knn")
    if asked and asked not in constant:
        raise UnknownNameError("baseline", asked, constant, f"Constant here: {', '.join(constant)}")
    return asked or constant[0]


def _sets(benchmark: Benchmark, on: Sequence[str]) -> list[ImageSet]:
    sets = {images.name: images for images in (*benchmark.near, *benchmark.far)}
    for name in on:
        if name not in sets:
            raise UnknownNameError("OOD set", name, sets, f"Known: {', '.join(sets)}")
    if not sets:
        raise DataError(f"benchmark {benchmark.name!r} has no near or far set to draw OOD images from")
    return [sets[name] for name in on] if on else list(sets.values())


def _check_pools(
    benchmark: Benchmark, plans: Sequence[Schedule], sets: Sequence[ImageSet], protocol: StreamProtocol
) -> None:
    """Refuse before any work what a draw would refuse later: pools that are too small, or not there."""
    if benchmark.id_val is None:
        raise DataError(f"benchmark {benchmark.name!r} has no id_val; thresholds are fixed on it before a stream")
    if len(benchmark.id_val) < protocol.rolling:
        raise DataError(
            f"id_val has {len(benchmark.id_val)} images, and a rolling threshold begins with {protocol.rolling} of "
            f"them: set rolling to {len(benchmark.id_val)} or less"
        )
    for plan in plans:
        if plan.drift and not benchmark.csid:
            raise DataError(f"{plan.name}: a drift goes to covariate-shifted ID images, and there is no csid set")
        needed = int(plan.foreign(0).sum())
        if plan.images - needed > len(benchmark.id_test):
            raise DataError(
                f"{plan.name}: {plan.images - needed} ID images are needed, and id_test has {len(benchmark.id_test)}; "
                "draw shorter streams (images)"
            )
        for images in sets:
            if needed > len(images):
                raise DataError(f"{plan.name}: {needed} OOD images are needed, and {images.name} has {len(images)}")
