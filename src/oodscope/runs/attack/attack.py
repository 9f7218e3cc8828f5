"""attack: several detectors, several variations, one set of outliers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from torch import Tensor

from oodscope.base.errors import DataError, DetectorError, OodscopeError
from oodscope.data.imageset import ImageSet
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Boundary
from oodscope.generation.variations.registry import create_variation
from oodscope.metrics.metric import Tuning
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.attacked import Attacked, PixelView, aim, transfer
from oodscope.runs.attack.estimate import FAILURES, announce_attack
from oodscope.runs.attack.exporting import export_found
from oodscope.runs.attack.landscape import look, mapped
from oodscope.runs.attack.measuring import budget_rows, judge_notes, measure, search_rows, transfer_rows, validity_rows
from oodscope.runs.attack.plan import POOL, EnergyName, Mix, Plan
from oodscope.runs.attack.recording import record, score_table
from oodscope.runs.attack.run import ANY, CLEAN, Attack
from oodscope.runs.attack.sources import SourceDraw, source_order
from oodscope.runs.attack.trace import AttackTrace, diagnose
from oodscope.runs.attack.validity import Validity
from oodscope.runs.evaluation.run import Result

VariationLike = str | tuple[str, Mapping[str, Any]] | Variation
"""A name, a name with settings such as ``("linf", {"epsilon": 0.03})``, or a variation."""

PARTNERS = 256
"""In-distribution images that a variation may blend outliers with."""


def attack(
    scorers: Mapping[str, TensorScorer],
    id_val: ImageSet,
    id_test: ImageSet,
    outliers: ImageSet,
    variations: Sequence[VariationLike] | Mapping[str, Variation] = ("affine", "color", "affine+color"),
    *,
    budget: int = 2000,
    chains: int = 5000,
    runs: int = 5,
    sampler: Mix | Sampler | Sequence[Sampler] = "portfolio",
    energy: EnergyName = "canonical",
    boundary: Boundary = "reflect",
    sources: SourceDraw = "stratified",
    linf_budget: int | None = None,
    white_box: bool = False,
    search_seeds: int = 1,
    seed: int = 0,
    judge: TensorScorer | None = None,
    export: Path | str | None = None,
    tuning: Tuning = "default",
    folder: Path | str | None = None,
    benchmark: tuple[str, str] | None = None,
    landscape: bool = False,
    progress: Progress = SILENT,
) -> Attack:
    """Search the most ID-like outliers of every detector, and measure what is left of it.

    ID images are scored once per detector. Every (detector, variation) is a search of its own, from the same source
    images: a draw of ``chains`` of ``outliers`` in which every class has its share. A detector that fails is left out,
    with the reason in the record.

    Parameters
    ----------
    scorers : whom to attack, by name: a ``Scorer`` (``fit_scorers`` makes them), or any function as ``FunctionScorer``.
    id_val : in-distribution images that set the scale of the scores.
    id_test : in-distribution images that outliers are ranked among.
    variations : names (``oodscope list variations``), joined by ``+`` where one acts after another, perhaps with
        settings as ``("linf", {"epsilon": 0.03})``; or objects, with names of your own as ``{name: variation}``.
    runs : independent runs that MinRank is averaged over: equal parts of the chains, each a draw of its own.
    budget, chains, sampler, energy, boundary, sources, linf_budget, white_box, search_seeds, seed, folder : see
        ``Plan``.
    judge : an independent classifier of the source classes as a scorer (``msp`` of it); with it every row says what
        share of the found images it still takes for a source class (``Validity``). Behind a generator's column it is
        what tells a detector's failures from the generator's.
    export : a folder for the found images of every detector and variation as sealed sets, which ``evaluate`` and
        trainings with outliers open like any other.
    tuning : how the detectors' parameters were chosen, for the record.
    benchmark : name and version for the record; by default the names and a hash of the sets.
    landscape : keep a map of one outlier's scores with the paths of two samplers, and compare samplers, for the first
        detector and the first variation with named coordinates: what figure 2 of the paper shows.

    Examples
    --------
    >>> images = bench.id_val, bench.id_test, bench.far[0]
    >>> attack = oods.attack({"msp": scorer}, *images, ["color"], budget=4, chains=6, runs=2)
    >>> attack.variations
    ['color']
    """
    if runs < 1:
        raise OodscopeError(f"MinRank is a mean over at least 1 run, not {runs}")
    sets = {"id_val": id_val, "id_test": id_test, "far": outliers}
    if len({each.name for each in sets.values()}) < len(sets):
        raise DataError(f"give id_val, id_test and outliers names of their own; two are called {_twice(sets)!r}")
    plan = Plan(
        budget,
        min(chains, len(outliers)),
        sampler,
        energy,
        boundary,
        seed,
        None if folder is None else Path(folder),
        linf_budget=linf_budget,
        sources=sources,
        white_box=white_box,
        search_seeds=search_seeds,
    )
    extras = Extras(min(runs, plan.chains), judge, None if export is None else Path(export), tuning, landscape)
    return _attack(scorers, sets, variations, plan, extras, benchmark, progress)


@dataclass(frozen=True)
class Extras:
    """What an attack is asked for beside its searches; see ``attack``."""

    runs: int
    judge: TensorScorer | None
    export: Path | None
    tuning: Tuning
    landscape: bool


def _attack(
    scorers: Mapping[str, TensorScorer],
    sets: Mapping[str, ImageSet],
    variations: Sequence[VariationLike] | Mapping[str, Variation],
    plan: Plan,
    extras: Extras,
    benchmark: tuple[str, str] | None,
    progress: Progress,
) -> Attack:
    started, view, outliers = perf_counter(), PixelView(scorers), sets["far"]
    rows = source_order(outliers, plan.sources, plan.seed)[: max(plan.chains, min(POOL, len(outliers)))]
    pool = view.rows(outliers, rows)
    named = named_variations(variations, pool, view.rows(sets["id_val"], range(min(PARTNERS, len(sets["id_val"])))))
    sources, drawn = pool[: plan.chains], mapped(named) if extras.landscape else None
    # before the searches, so that a judge that cannot be asked is not found out after them
    validity = None if extras.judge is None else Validity.of(extras.judge, pool, labels=outliers.labels[rows])
    if plan.folder is None or not plan.folder.exists():
        announce_attack(scorers, named, pool, plan, progress)
    traces, skipped = _traces(scorers, view, sets, pool, named, plan, progress)
    scores = score_table(traces, sets, named, plan, extras.runs, rows[: plan.chains], benchmark, extras.tuning)
    measured = measure(scores) + budget_rows(scores, traces) + search_rows(scores, traces)
    if len(traces) > 1:
        measured = measured + Measurements(_transferred(scores, traces, named, sources, progress))
    if validity is not None and validity.doubt is None:
        measured = measured + Measurements(validity_rows(scores, traces, named, validity, sources))
    if extras.export is not None:
        for trace in traces:
            for name, each in named.items():
                export_found(trace, name, each, sources, outliers, rows[: plan.chains], extras.export)
    notes = [*_notes(traces, plan), *([] if validity is None else judge_notes(validity, measured))]
    made = record(scores, traces, sets, skipped, notes, perf_counter() - started)
    pairs = [trace.pair(name, each, sources) for trace in traces for name, each in named.items()]
    seen = None if drawn is None else look(traces[0], drawn, named[drawn], sources, plan)
    return Attack(Result(made, measured, scores), tuple(pairs), seen)


def named_variations(
    variations: Sequence[VariationLike] | Mapping[str, Variation], images: Tensor, partners: Tensor
) -> dict[str, Variation]:
    """Variations by name, made for images of this shape."""
    if isinstance(variations, str):
        raise OodscopeError(f"variations is a list of names, such as ['affine', 'color']; got {variations!r}")
    if not variations:
        raise OodscopeError("no variation to attack with; name some, such as affine and color")
    if not isinstance(variations, Mapping):
        channels, height, width = images.shape[1:]
        shape: dict[str, Any] = {"image_shape": (channels, height, width), "partners": partners}
        made = [_named(each, shape) for each in variations]
        variations = dict(made)
        if len(variations) < len(made):
            raise OodscopeError("two variations have one name; hand them over as {name: variation}")
    for name in variations:
        if name in (CLEAN, ANY):
            raise OodscopeError(f"a variation cannot be called {name!r}: tables use this name for another column")
    return dict(variations)


def _named(given: VariationLike, shape: Mapping[str, Any]) -> tuple[str, Variation]:
    """A variation by the name that tables call it by: with the settings that were given for it."""
    if isinstance(given, Variation):
        return given.name, given
    name, settings = (given, {}) if isinstance(given, str) else given
    made = create_variation(name, **shape, **settings)
    return ",".join([made.name, *(f"{key}={value}" for key, value in settings.items())]), made


def _traces(
    scorers: Mapping[str, TensorScorer],
    view: PixelView,
    sets: Mapping[str, ImageSet],
    pool: Tensor,
    variations: Mapping[str, Variation],
    plan: Plan,
    progress: Progress,
) -> tuple[list[AttackTrace], dict[str, str]]:
    """One detector after the other; one that fails is skipped, with the reason."""
    traces, skipped = [], {}
    for name, scorer in scorers.items():
        try:
            attacked = aim(name, scorer, view, sets["id_val"], sets["id_test"], pool, plan.file_of(name), progress)
            traces.append(_trace(attacked, pool, variations, plan, progress))
        except FAILURES as error:
            said = (str(error).splitlines() or ["no message"])[0]
            skipped[name] = said if isinstance(error, OodscopeError) else f"{type(error).__name__}: {said}"
    if not traces:
        raise DetectorError(f"no detector could be attacked; {'; '.join(f'{k}: {v}' for k, v in skipped.items())}")
    return traces, skipped


def _trace(
    attacked: Attacked, pool: Tensor, variations: Mapping[str, Variation], plan: Plan, progress: Progress
) -> AttackTrace:
    searches, diagnoses = {}, {}
    for name, variation in variations.items():
        repeats = [plan.with_seed(number) for number in range(plan.search_seeds)]
        searches[name] = tuple(each.search(attacked, name, variation, pool, progress) for each in repeats)
        white = plan.check_by_gradients(attacked, name, variation, pool)
        samplers = plan.samplers_for(variation)
        diagnoses[name] = diagnose(searches[name], samplers, attacked.id_test, white)
    clean = [each[0].clean for each in searches.values() if each[0].clean is not None]
    # a search scored its source images too; only an attack by generators alone did not
    scored = attacked.sources[: plan.chains] if not clean else np.asarray(clean[0], dtype=np.float64)
    return AttackTrace(attacked, scored, searches, diagnoses)


def _transferred(
    scores: ScoreTable,
    traces: Sequence[AttackTrace],
    variations: Mapping[str, Variation],
    sources: Tensor,
    progress: Progress,
) -> Iterator[Measurement]:
    attacked = [trace.attacked for trace in traces]
    with progress.stage("transfer", len(variations)) as advance:
        for name, variation in variations.items():
            points = {trace.attacked.name: trace.results[name].points for trace in traces}
            yield from transfer_rows(scores, traces, name, transfer(attacked, variation, points, sources))
            advance(1)


def _notes(traces: Sequence[AttackTrace], plan: Plan) -> Iterator[str]:
    yield f"every search: {plan.chains:,} chains, {plan.budget:,} evaluations each; {plan.describe()}"
    if plan.linf_budget is not None:
        yield f"in the l-inf ball: {plan.linf_budget:,} evaluations each"
    for trace in traces:
        for name, diagnosis in trace.diagnoses.items():
            for flag in diagnosis.flags:
                yield f"unreliable: {trace.attacked.name} under {name}: {flag}"
            for note in trace.results[name].notes:
                yield f"{trace.attacked.name} under {name}: {note}"


def _twice(sets: Mapping[str, ImageSet]) -> str:
    names = [each.name for each in sets.values()]
    return next(name for name in names if names.count(name) > 1)
