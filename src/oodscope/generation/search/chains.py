"""Chains: one block of chains after another, sent against one scorer."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.math.numbers import precise
from oodscope.execution.progress import Advance, Progress
from oodscope.generation.samplers.base import Sampler, State
from oodscope.generation.search.energy import Energy
from oodscope.generation.search.fast import FastPipeline
from oodscope.generation.search.result import SearchResult
from oodscope.generation.search.target import Noise, Pipeline, Target, Visits
from oodscope.generation.variations.base import Variation
from oodscope.models.classifier.network import full_precision

SPREAD, ROUNDING = 1e-5, 1e-6
"""Two evaluations may differ by this share of the scores' spread, and by float32 rounding."""


def check_pipeline(scorer: str, pipeline: Pipeline, points: Tensor, images: Tensor | None) -> None:
    """Refuse a scorer whose scores have the wrong shape, are not finite, or change when asked again.

    The minimum over many noisy scores is biased low: it finds luck, not weakness.
    """
    with torch.no_grad():
        first, second = pipeline(points, images), pipeline(points, images)
    for scores in (first, second):
        if not isinstance(scores, Tensor) or scores.shape != points.shape[:1]:
            shape = list(getattr(scores, "shape", ())) or type(scores).__name__
            raise DetectorError(f"{scorer}: turns {len(points)} images into {shape}; needed: one score per image")
    broken = (~torch.isfinite(first)).nonzero().flatten().tolist()
    if broken:
        raise DetectorError(
            f"{scorer}: scores are NaN or infinite for {len(broken)} of {len(first)} start images (row {broken[0]})"
        )
    apart = float((first - second).abs().max())
    if apart > max(SPREAD * float(first.double().std(correction=0)), ROUNDING * float(first.abs().max())):
        raise DetectorError(
            f"{scorer}: not deterministic: the same images scored twice differ by {apart:.3g}. "
            "Fix its randomness (dropout, noise) before searching for its worst images"
        )


MILESTONES = frozenset(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Steps after which a listener may look at the minimum; each look makes the device answer."""


class Chains:
    """Everything that the blocks of one search share.

    Parameters
    ----------
    batch : chains of a full block.
    fast : search with a compiled network in bf16, where scorer and sampler allow it.
    earlier : a search of the same scorer, variation and images by another sampler; see ``search``.
    """

    def __init__(
        self,
        scorer: TensorScorer,
        variation: Variation,
        sampler: Sampler,
        energy: Energy | None,
        budgets: Sequence[int],
        batch: int,
        seed: int,
        fast: bool,
        earlier: SearchResult | None = None,
    ) -> None:
        self.scorer, self.variation, self.sampler = scorer, variation.to(scorer.device), sampler
        self.energy, self.budgets, self.batch, self.seed = energy, tuple(budgets), batch, seed
        self.half = fast and sampler.half and not sampler.gradient and isinstance(scorer, Scorer)
        # of blocks with a gap between them, rows are not where they are here
        self.earlier = earlier if earlier is not None and earlier.blocks == tuple(range(len(earlier.blocks))) else None
        self._pipeline: Pipeline | None = None

    def describe(self) -> dict[str, Any]:
        """What decides the result, as plain JSON values."""
        return {
            "scorer": {"name": name_of(self.scorer), "fingerprint": getattr(self.scorer, "fingerprint", None)},
            "variation": self.variation.describe(),
            "sampler": self.sampler.describe(),
            "energy": None if self.energy is None else self.energy.describe(),
            "precision": "bf16" if self.half else "float32",
            "seed": self.seed,
            "budgets": list(self.budgets),
        }

    def run(
        self, number: int, rows: slice, images: Tensor | None, description: dict[str, Any], progress: Progress
    ) -> SearchResult:
        """Search one block: the chains of some rows."""
        started, device, domain = perf_counter(), self.scorer.device, self.variation.domain
        chains = rows.stop - rows.start
        source = None if images is None else images[rows].detach().to(device)
        noise = Noise(self.seed, number, device)
        identity = self._identity(chains)
        start = domain.draw(chains, noise.generator) if identity is None else identity
        visits = Visits(chains, domain.dimension, self.budgets, device)
        energy_of = self.energy.on(device) if self.energy else torch.clone
        pipeline = self._ready(start, source)
        radius = getattr(self.variation, "epsilon", 0.5)
        target = Target(pipeline, source, energy_of, domain, noise, visits, self.sampler.replicas, radius)
        steps = self.budgets[-1] // self.sampler.evaluations
        with torch.no_grad(), progress.stage(f"search block {number}", steps) as advance:
            state = self.sampler.begin(target, start)
            visits.begin()
            at_start = visits.lowest
            self.walk(target, state, visits, steps, advance)
        visits.check(name_of(self.scorer), rows.start)
        clean = None if source is None else self._clean(rows, source)
        best = self._rescored(visits, source, clean, identity, at_start)
        return SearchResult(
            **{name: values.cpu() for name, values in best.items()},
            clean=None if clean is None else clean.cpu(),
            at_budget=visits.at_budgets().cpu().double(),
            acceptance=state.accepted[:chains].cpu().double() / steps,
            last=state.points[:chains].cpu(),
            evaluations=visits.count * chains,
            seconds=perf_counter() - started,
            blocks=(number,),
            description=description,
            notes=pipeline.notes if isinstance(pipeline, FastPipeline) else (),
        )

    def walk(self, target: Target, state: State, visits: Visits, steps: int, advance: Advance) -> None:
        """Make all steps; the device is asked for nothing, unless a listener asks for a remark."""
        shown, every = 0, max(1, steps // 100)
        for step in range(steps):
            self.sampler.move(target, state, step)
            done = step + 1
            if done in MILESTONES or done == steps:
                advance(done - shown, lambda: f"minimum {float(visits.lowest.min()):.4g}")
                shown = done
            elif done % every == 0:
                advance(done - shown)
                shown = done

    def _identity(self, chains: int) -> Tensor | None:
        identity = self.variation.identity
        return None if identity is None else torch.tensor(identity, device=self.scorer.device).repeat(chains, 1)

    def _ready(self, start: Tensor, source: Tensor | None) -> Pipeline:
        """The pipeline of the search, made and checked at the first block."""
        if self._pipeline is None:
            if self.earlier is None:
                check_pipeline(name_of(self.scorer), self._exact, start, source)
            self._pipeline = self._plain
            if self.half and isinstance(self.scorer, Scorer):
                self._pipeline = FastPipeline(self.scorer, self.variation, self.batch * self.sampler.replicas)
        return self._pipeline

    def _plain(self, points: Tensor, images: Tensor | None) -> Tensor:
        return self.scorer.score_tensor(self.variation(points, images))

    def _exact(self, points: Tensor, images: Tensor | None) -> Tensor:
        with full_precision(self.scorer.device), torch.no_grad():
            return self._plain(points, images)

    def _clean(self, rows: slice, source: Tensor) -> Tensor:
        """Scores of the source images in float32: those of the earlier search, if it has these rows."""
        known = None if self.earlier is None else self.earlier.clean
        if known is not None and len(known) >= rows.stop:
            return known[rows].to(self.scorer.device)
        with full_precision(self.scorer.device), torch.no_grad():
            return precise(self.scorer.score_tensor(source))

    def _rescored(
        self, visits: Visits, source: Tensor | None, clean: Tensor | None, identity: Tensor | None, at_start: Tensor
    ) -> dict[str, Tensor]:
        """The best states in float32.

        Where a state is not below its source image after all, the identity is the best.
        """
        points, searched, improved_at = visits.points, visits.lowest, visits.improved_at
        scores = precise(self._exact(points, source))
        if clean is not None and identity is not None:
            worse = scores > clean
            scores, searched = torch.where(worse, clean, scores), torch.where(worse, at_start, searched)
            points = torch.where(worse.unsqueeze(1), identity, points)
            improved_at = torch.where(worse, 0, improved_at)
        return {"points": points, "scores": scores, "searched": searched, "improved_at": improved_at}


def name_of(scorer: TensorScorer) -> str:
    """How results and errors call a scorer."""
    return str(getattr(scorer, "name", type(scorer).__name__))
