"""Plan: how hard every detector is attacked, the same for all of them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError, OodscopeError, UnknownNameError
from oodscope.base.hashing import fingerprint
from oodscope.execution.progress import SILENT, Prefixed, Progress
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.projected_gradient import ProjectedGradient
from oodscope.generation.samplers.zeroth_order import ZerothOrder
from oodscope.generation.search.energy import Energy, RankProbit, Standardised
from oodscope.generation.search.result import SearchResult
from oodscope.generation.search.search import search
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Boundary
from oodscope.generation.variations.linf import LInf
from oodscope.runs.attack.attacked import Attacked

PRESETS = {"quick": (200, 200), "paper": (2000, 5000)}
"""Evaluations per chain, and chains. The paper gives its l-infinity baseline 20,000 steps of two evaluations; here
every variation has the same budget."""

EnergyName = Literal["standardised", "rank_probit"]

WHITE_STEPS = 50
"""At most, of the gradient search that looks over the shoulder of the other one."""

BLOCK, POOL = 1000, 5000
"""Chains that are searched together and share a stream of random numbers, and source images that a search is described
by: 1,000 chains are the first block of 5,000, and a later attack with more of them goes on from there."""


@dataclass(frozen=True)
class Plan:
    """Settings of every search of an attack.

    Parameters
    ----------
    budget : evaluations of the detector per chain, after the start. The paper's 2,000.
    chains : searches side by side, one per source image, or per latent start of a generator. The paper's 5,000.
    sampler : how chains move. None: Metropolis-Hastings as in the paper; in the :math:`l_\\infty` ball, descent along
        random directions, as in the paper.
    energy : ``standardised`` divides scores by their spread on ID validation (the paper); ``rank_probit`` replaces them
        by normal quantiles of their ranks, the same for every monotone change of a score.
    boundary : of the default sampler: how a step ends that leaves the box; ``clamp`` is the paper's code.
    seed : of all random numbers.
    folder : where searches are kept block by block, so that a killed one goes on; None keeps nothing.
    """

    budget: int = 2000
    chains: int = 5000
    sampler: Sampler | None = None
    energy: EnergyName = "standardised"
    boundary: Boundary = "reflect"
    seed: int = 0
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise OodscopeError(f"an attack needs a budget of at least 1 evaluation per chain, not {self.budget}")
        if self.chains < 1:
            raise OodscopeError(f"an attack needs at least 1 chain, not {self.chains}")
        if self.energy not in get_args(EnergyName):
            raise UnknownNameError("energy", self.energy, get_args(EnergyName))
        if self.boundary not in get_args(Boundary):
            raise UnknownNameError("boundary", self.boundary, get_args(Boundary))

    @property
    def budgets(self) -> tuple[int, ...]:
        """1, 2, 5, 10, 20, 50, ... up to the budget: where the curves have points."""
        steps = (lead * 10**power for power in range(9) for lead in (1, 2, 5))
        return (*(step for step in steps if step < self.budget), self.budget)

    def sampler_for(self, variation: Variation) -> Sampler:
        """How chains move through the parameters of a variation."""
        if self.sampler is not None:
            return self.sampler
        return ZerothOrder() if isinstance(variation, LInf) else MetropolisHastings(boundary=self.boundary)

    def energy_of(self, attacked: Attacked) -> Energy:
        """The scale on which a detector's differences count."""
        return Standardised.of(attacked.id_val) if self.energy == "standardised" else RankProbit(attacked.id_val)

    def file_of(self, detector: str) -> Path | None:
        """Where the ID scores of a detector are kept."""
        return None if self.folder is None else self.folder / _slug(detector) / "id_scores.safetensors"

    def search(
        self, attacked: Attacked, name: str, variation: Variation, pool: Tensor, progress: Progress = SILENT
    ) -> SearchResult:
        """Search the worst images of one detector under one variation; what is in the folder is not done again.

        Parameters
        ----------
        pool : source images, at least as many as there are chains.
        """
        part = self.chains < len(pool) and self.chains % BLOCK == 0
        images = pool if part else pool[: self.chains]
        return search(
            attacked.scorer,
            variation,
            self.sampler_for(variation),
            self.budgets,
            images if variation.conditional else None,
            chains=len(images),
            energy=self.energy_of(attacked),
            block=BLOCK,
            blocks=range(self.chains // BLOCK) if part else None,
            seed=self.seed,
            folder=None if self.folder is None else self.folder / _slug(attacked.name) / _slug(name),
            progress=Prefixed(progress, f"{attacked.name}, {name}"),
        )

    def white_box(self, attacked: Attacked, name: str, variation: Variation, pool: Tensor) -> SearchResult | None:
        """A short search with gradients on the first chains; None where there are none to follow."""
        # an eighth of the chains, between 8 and 64: enough to notice, little beside the search itself
        chains = min(self.chains, max(8, min(64, self.chains // 8)))
        folder = None if self.folder is None else self.folder / _slug(attacked.name) / f"{_slug(name)}-white-box"
        if not variation.differentiable:
            return None
        try:
            return search(
                attacked.scorer,
                variation,
                ProjectedGradient(),
                min(WHITE_STEPS, self.budget),
                pool[:chains] if variation.conditional else None,
                chains=chains,
                energy=self.energy_of(attacked),
                seed=self.seed,
                # fifty steps are over before a network is compiled for them
                fast=False,
                folder=folder,
            )
        except (DetectorError, RuntimeError) as error:
            # a score without a gradient is not a fault: autograd, or the scorer itself, has said so
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            return None


def _slug(name: str) -> str:
    """A name as a folder: readable, and distinct from others that read alike."""
    plain = re.sub(r"[^A-Za-z0-9_+.-]+", "-", name).strip("-.")
    return plain if plain == name else f"{plain}-{fingerprint(name)[:8]}"
