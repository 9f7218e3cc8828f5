"""attack: several detectors, several variations, one set of outliers."""

from collections.abc import Iterator, Mapping, Sequence
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
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.attacked import Attacked, PixelView, aim, transfer
from oodscope.runs.attack.landscape import look, mapped
from oodscope.runs.attack.measuring import budget_rows, measure, search_rows, transfer_rows
from oodscope.runs.attack.plan import POOL, EnergyName, Plan
from oodscope.runs.attack.recording import record, score_table
from oodscope.runs.attack.run import ANY, CLEAN, Attack
from oodscope.runs.attack.trace import AttackTrace, judged
from oodscope.runs.evaluation.run import Result

PARTNERS = 256
"""In-distribution images that a variation may blend outliers with."""

FAILURES = (OodscopeError, RuntimeError, ValueError, TypeError)
"""What a detector may stumble over without ending the attack on the others."""


def attack(
    scorers: Mapping[str, TensorScorer],
    id_val: ImageSet,
    id_test: ImageSet,
    outliers: ImageSet,
    variations: Sequence[str | Variation] | Mapping[str, Variation] = ("affine", "color", "affine+color"),
    *,
    budget: int = 2000,
    chains: int = 5000,
    runs: int = 5,
    sampler: Sampler | None = None,
    energy: EnergyName = "standardised",
    boundary: Boundary = "reflect",
    seed: int = 0,
    folder: Path | str | None = None,
    benchmark: tuple[str, str] | None = None,
    landscape: bool = False,
    progress: Progress = SILENT,
) -> Attack:
    """Search the most ID-like outliers of every detector, and measure what is left of it.

    ID images are scored once per detector. Every (detector, variation) is a search of its own, from the same source
    images: the first ``chains`` of ``outliers``. A detector that fails is left out, with the reason in the record.

    Parameters
    ----------
    scorers : whom to attack, by name: a ``Scorer`` (``fit_scorers`` makes them), or any function as ``FunctionScorer``.
    id_val : in-distribution images that set the scale of the scores.
    id_test : in-distribution images that outliers are ranked among.
    variations : names (``oodscope list variations``), joined by ``+`` where one acts after another; or objects, with
        names of your own as ``{name: variation}``.
    runs : independent runs that MinRank is averaged over: equal blocks of the chains.
    budget, chains, sampler, energy, boundary, seed, folder : see ``Plan``.
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
    started = perf_counter()
    if runs < 1:
        raise OodscopeError(f"MinRank is a mean over at least 1 run, not {runs}")
    sets = {"id_val": id_val, "id_test": id_test, "far": outliers}
    if len({each.name for each in sets.values()}) < len(sets):
        raise DataError(f"give id_val, id_test and outliers names of their own; two are called {_twice(sets)!r}")
    view = PixelView(scorers)
    place = None if folder is None else Path(folder)
    plan = Plan(budget, min(chains, len(outliers)), sampler, energy, boundary, seed, place)
    pool = view.first(outliers, max(plan.chains, min(POOL, len(outliers))))
    named = named_variations(variations, pool, view.first(id_val, min(PARTNERS, len(id_val))))
    sources, drawn = pool[: plan.chains], mapped(named) if landscape else None
    traces, skipped = _traces(scorers, view, sets, pool, named, plan, progress)
    scores = score_table(traces, sets, named, plan, min(runs, plan.chains), benchmark)
    rows = measure(scores) + budget_rows(scores, traces) + search_rows(scores, traces)
    if len(traces) > 1:
        rows = rows + Measurements(_transferred(scores, traces, named, sources, progress))
    made = record(scores, traces, sets, skipped, list(_notes(traces, plan)), perf_counter() - started)
    pairs = [trace.pair(name, each, sources) for trace in traces for name, each in named.items()]
    seen = None if drawn is None else look(traces[0], drawn, named[drawn], sources, plan)
    return Attack(Result(made, rows, scores), tuple(pairs), seen)


def named_variations(
    variations: Sequence[str | Variation] | Mapping[str, Variation], images: Tensor, partners: Tensor
) -> dict[str, Variation]:
    """Variations by name, made for images of this shape."""
    if isinstance(variations, str):
        raise OodscopeError(f"variations is a list of names, such as ['affine', 'color']; got {variations!r}")
    if not variations:
        raise OodscopeError("no variation to attack with; name some, such as affine and color")
    if not isinstance(variations, Mapping):
        channels, height, width = images.shape[1:]
        shape: dict[str, Any] = {"image_shape": (channels, height, width), "partners": partners}
        made = [create_variation(each, **shape) if isinstance(each, str) else each for each in variations]
        variations = {each.name: each for each in made}
        if len(variations) < len(made):
            raise OodscopeError("two variations have one name; hand them over as {name: variation}")
    for name in variations:
        if name in (CLEAN, ANY):
            raise OodscopeError(f"a variation cannot be called {name!r}: tables use this name for another column")
    return dict(variations)


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
            attacked = aim(name, scorer, view, sets["id_val"], sets["id_test"], plan.file_of(name), progress)
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
    results, diagnoses = {}, {}
    for name, variation in variations.items():
        results[name] = plan.search(attacked, name, variation, pool, progress)
        white = plan.white_box(attacked, name, variation, pool)
        diagnoses[name] = judged(results[name], white, attacked, plan, variation)
    clean = [each.clean for each in results.values() if each.clean is not None]
    # a search scored its source images too; only an attack by generators alone did not
    scored = attacked.score([pool[: plan.chains]]) if not clean else np.asarray(clean[0], dtype=np.float64)
    return AttackTrace(attacked, scored, results, diagnoses)


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
    yield f"every search: {plan.chains:,} chains, {plan.budget:,} evaluations each; energy {plan.energy}, T = 1"
    for trace in traces:
        for name, diagnosis in trace.diagnoses.items():
            for flag in diagnosis.flags:
                yield f"unreliable: {trace.attacked.name} under {name}: {flag}"
            for note in trace.results[name].notes:
                yield f"{trace.attacked.name} under {name}: {note}"


def _twice(sets: Mapping[str, ImageSet]) -> str:
    names = [each.name for each in sets.values()]
    return next(name for name in names if names.count(name) > 1)
