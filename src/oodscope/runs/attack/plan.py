"""Plan: how hard every detector is attacked, the same for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError, OodscopeError, UnknownNameError
from oodscope.base.files import slug
from oodscope.base.hashing import fingerprint
from oodscope.execution.progress import SILENT, Prefixed, Progress
from oodscope.generation.samplers.auto_projected_gradient import AutoProjectedGradient
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.zeroth_order import ZerothOrder
from oodscope.generation.search.energy import RELEASED, Energy, NormalScores, Standardised, rank_probit
from oodscope.generation.search.portfolio import affordable, default_samplers, merge_searches
from oodscope.generation.search.result import SearchResult
from oodscope.generation.search.search import search
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Boundary
from oodscope.generation.variations.linf import LInf
from oodscope.runs.attack.attacked import Attacked
from oodscope.runs.attack.sources import SourceDraw

EnergyName = Literal["canonical", "standardised", "released", "rank_probit"]

Mix = Literal["portfolio", "paper"]
"""Samplers by variation. ``portfolio``: several, at equal total evaluations (``default_samplers``). ``paper``:
Metropolis-Hastings with step .1 at T = 1, and in the :math:`l_\\infty` ball descent along random directions."""

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"budget": 200, "chains": 200},
    "thorough": {"budget": 2000, "chains": 5000},
    "paper": {
        "budget": 2000,
        "chains": 5000,
        "linf_budget": 40_000,
        "runs": 5,
        "sampler": "paper",
        "energy": "standardised",
        "boundary": "clamp",
        "sources": "first",
        "interpolation": "nearest",
    },
}
"""Settings by name. ``paper`` is that of Yoon et al. for every variation: 20,000 steps of two evaluations in the
:math:`l_\\infty` ball, the first 5,000 images, MinRank over five runs of 1,000 chains, steps that stop at the wall."""

WHITE_CHAINS = 64
"""At most, of the gradient search that checks the other one: as many evaluations per chain, on fewer chains."""

BLOCK, POOL = 1000, 5000
"""Chains that are searched together and share a stream of random numbers, and source images that a search is described
by: 1,000 chains are the first block of 5,000, and a later attack with more of them goes on from there."""


@dataclass(frozen=True)
class Plan:
    """Settings of every search of an attack.

    Parameters
    ----------
    budget : evaluations of the detector per chain, after the start, of all samplers together. The paper's 2,000.
    chains : searches side by side, one per source image, or per latent start of a generator. The paper's 5,000.
    sampler : how chains move: ``portfolio``, ``paper``, or one or several samplers for every variation. Several share
        the budget equally, and each chain keeps the lowest score that any of them found.
    energy : ``canonical`` replaces scores by normal quantiles of their ranks among ID validation and source images, the
        same for every monotone change of a score; ``standardised`` divides them by their spread on ID validation (the
        paper), ``released`` by that and .001 (its code); ``rank_probit`` takes ranks among ID validation alone.
    boundary : of the default samplers: how a step ends that leaves the box; ``clamp`` is the paper's code.
    seed : of all random numbers.
    folder : where searches are kept block by block, so that a killed one goes on; None keeps nothing.
    linf_budget : in the :math:`l_\\infty` ball, in place of ``budget``.
    sources : how source images are drawn, see ``SourceDraw``.
    white_box : check every search by one with gradients, of the same budget and from several starts, on some chains.
    search_seeds : searches of every detector and variation, with seeds of their own; numbers are means over them.
    """

    budget: int = 2000
    chains: int = 5000
    sampler: Mix | Sampler | Sequence[Sampler] = "portfolio"
    energy: EnergyName = "canonical"
    boundary: Boundary = "reflect"
    seed: int = 0
    folder: Path | None = None
    linf_budget: int | None = None
    sources: SourceDraw = "stratified"
    white_box: bool = False
    search_seeds: int = 1

    def __post_init__(self) -> None:
        if min(self.budget, self.linf_budget or 1) < 1:
            raise OodscopeError(f"an attack needs a budget of at least 1 evaluation per chain, not {self.budget}")
        if self.chains < 1:
            raise OodscopeError(f"an attack needs at least 1 chain, not {self.chains}")
        if self.search_seeds < 1:
            raise OodscopeError(f"an attack searches at least once, not {self.search_seeds} times")
        for what, value, known in (
            ("energy", self.energy, get_args(EnergyName)),
            ("boundary", self.boundary, get_args(Boundary)),
            ("draw of sources", self.sources, get_args(SourceDraw)),
        ):
            if value not in known:
                raise UnknownNameError(what, value, known)
        if isinstance(self.sampler, str) and self.sampler not in get_args(Mix):
            raise UnknownNameError("mix of samplers", self.sampler, get_args(Mix))
        if isinstance(self.sampler, Sequence) and not self.sampler:
            raise OodscopeError("no sampler to search with; name some, such as mh and random")

    def describe(self) -> str:
        """How chains move, on what scale, from which images: in words."""
        if isinstance(self.sampler, str):
            moves = {"portfolio": "a portfolio of samplers", "paper": "the paper's sampler, T = 1"}[self.sampler]
        else:
            members = (self.sampler,) if isinstance(self.sampler, Sampler) else self.sampler
            moves = " and ".join(each.name for each in members)
        drawn = {"stratified": "drawn in the shares of its classes", "first": "its first images"}[self.sources]
        return f"{moves}; energy {self.energy}; sources {drawn}, seed {self.seed}"

    def with_seed(self, number: int) -> "Plan":
        """The plan of one of the searches; the first has the seed and the folder of the plan itself."""
        folder = self.folder if number == 0 or self.folder is None else self.folder / f"seed-{number}"
        return replace(self, seed=self.seed + number, folder=folder, search_seeds=1)

    def budget_for(self, variation: Variation) -> int:
        """Evaluations per chain."""
        return self.linf_budget if isinstance(variation, LInf) and self.linf_budget else self.budget

    def samplers_for(self, variation: Variation, gradients: bool = True) -> tuple[Sampler, ...]:
        """How chains move through the parameters of a variation.

        Parameters
        ----------
        gradients : whether there are any; the portfolio leaves out who needs them where there are none.
        """
        if isinstance(self.sampler, Sampler):
            return (self.sampler,)
        if not isinstance(self.sampler, str):
            return affordable(self.sampler, self.budget_for(variation))
        if self.sampler == "paper":
            return (ZerothOrder() if isinstance(variation, LInf) else MetropolisHastings(boundary=self.boundary),)
        usable = [each for each in default_samplers(variation, self.boundary) if gradients or not each.gradient]
        return affordable(usable, self.budget_for(variation))

    def energy_of(self, attacked: Attacked) -> Energy:
        """The scale on which a detector's differences count."""
        if self.energy == "standardised":
            return Standardised.of(attacked.id_val)
        if self.energy == "released":
            return Standardised.of(attacked.id_val, RELEASED)
        if self.energy == "rank_probit":
            return rank_probit(attacked.id_val)
        return NormalScores(attacked.id_val, attacked.sources)

    def file_of(self, detector: str) -> Path | None:
        """Where the ID scores of a detector are kept."""
        return None if self.folder is None else self.folder / slug(detector) / "id_scores.safetensors"

    def search(
        self, attacked: Attacked, name: str, variation: Variation, pool: Tensor, progress: Progress = SILENT
    ) -> SearchResult:
        """Search the worst images of one detector under one variation; what is in the folder is not done again.

        Parameters
        ----------
        pool : source images, at least as many as there are chains.
        """
        samplers = self.samplers_for(variation, has_gradient(attacked, variation, pool))
        share = self.budget_for(variation) // len(samplers)
        results: list[SearchResult] = []
        for place, sampler in zip(_places(name, samplers), samplers):
            earlier = results[0] if results else None
            results.append(self._search(attacked, name, variation, pool, sampler, share, place, earlier, progress))
        return merge_searches(results)

    def _search(
        self,
        attacked: Attacked,
        name: str,
        variation: Variation,
        pool: Tensor,
        sampler: Sampler,
        budget: int,
        place: str,
        earlier: SearchResult | None,
        progress: Progress,
    ) -> SearchResult:
        part = self.chains < len(pool) and self.chains % BLOCK == 0
        images = pool if part else pool[: self.chains]
        return search(
            attacked.scorer,
            variation,
            sampler,
            curve(budget),
            images if variation.conditional else None,
            chains=len(images),
            energy=self.energy_of(attacked),
            block=BLOCK,
            blocks=range(self.chains // BLOCK) if part else None,
            seed=self.seed,
            folder=None if self.folder is None else self.folder / slug(attacked.name) / place,
            earlier=earlier,
            progress=Prefixed(progress, f"{attacked.name}, {name}"),
        )

    def check_by_gradients(
        self, attacked: Attacked, name: str, variation: Variation, pool: Tensor
    ) -> SearchResult | None:
        """A search with gradients from several starts, on some chains; None where none is asked for or possible."""
        if not self.white_box or not has_gradient(attacked, variation, pool):
            return None
        chains = min(self.chains, max(8, min(WHITE_CHAINS, self.chains // 8)))
        budget = self.budget_for(variation)
        folder = None if self.folder is None else self.folder / slug(attacked.name) / f"{slug(name)}-white-box"
        return search(
            attacked.scorer,
            variation,
            # four starts at least: a single one may end in a small hollow
            AutoProjectedGradient(length=max(2, min(50, budget // 4))),
            budget,
            pool[:chains] if variation.conditional else None,
            chains=chains,
            energy=self.energy_of(attacked),
            seed=self.seed,
            fast=False,
            folder=folder,
        )


def curve(budget: int) -> tuple[int, ...]:
    """Evaluations at which the lowest scores are kept: 1, 2, 5, 10, ..., and the last three halvings of the budget."""
    steps = {lead * 10**power for power in range(9) for lead in (1, 2, 5)}
    halves = {budget // 2**power for power in range(4)}
    return tuple(sorted(step for step in steps | halves if 1 <= step <= budget))


def has_gradient(attacked: Attacked, variation: Variation, pool: Tensor) -> bool:
    """Whether a gradient flows from the score to the parameters of a variation, tried on two images."""
    scorer = attacked.scorer
    if not variation.differentiable or not getattr(scorer, "differentiable", True):
        return False
    moved = variation.to(scorer.device)
    points = moved.domain.draw(2, torch.Generator().manual_seed(0)).to(scorer.device).requires_grad_()
    images = pool[:1].repeat(2, 1, 1, 1).to(scorer.device) if variation.conditional else None
    try:
        with torch.enable_grad():
            scores = scorer.score_tensor(moved(points, images))
            (gradient,) = torch.autograd.grad(scores.sum(), points)
        return bool(gradient.isfinite().all())
    except (DetectorError, RuntimeError) as error:
        # a score without a gradient is not a fault: autograd, or the scorer itself, has said so
        if isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        return False


def _places(name: str, samplers: Sequence[Sampler]) -> list[str]:
    """A folder for each member of a portfolio; for a single sampler, that of the variation."""
    if len(samplers) == 1:
        return [slug(name)]
    return [f"{slug(name)}-{each.name}-{fingerprint(each.describe())[:6]}" for each in samplers]
