"""How long an attack will take, from a few evaluations, before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.document.wording import duration
from oodscope.execution.pace import pace
from oodscope.execution.progress import Progress, announce
from oodscope.generation.variations.base import Variation
from oodscope.runs.attack.plan import BLOCK, Plan

FAILURES = (OodscopeError, RuntimeError, ValueError, TypeError)
"""What a detector may stumble over without ending the attack on the others."""

LOOKED = 100
"""Images at most that an evaluation is timed on: a fraction of a second on a processor."""

BACKWARD = 2.0
"""A backward pass costs about so many forward passes."""


@dataclass(frozen=True)
class Estimate:
    """What an attack asks for, and how long it takes.

    Parameters
    ----------
    evaluations : of all detectors, variations, chains and search seeds.
    seconds : of these evaluations, at the speed of a few plain ones; a GPU compiles the network and is faster.
    """

    evaluations: int
    seconds: float

    def __str__(self) -> str:
        count = f"{self.evaluations / 1e6:,.1f} million" if self.evaluations >= 10**6 else f"{self.evaluations:,}"
        return f"about {duration(self.seconds)} for {count} evaluations"


def estimate(
    scorers: Mapping[str, TensorScorer], variations: Mapping[str, Variation], pool: Tensor, plan: Plan
) -> Estimate:
    """Time one evaluation of every detector and variation, and multiply.

    Parameters
    ----------
    pool : source images.
    """
    evaluations, seconds = 0, 0.0
    for scorer in scorers.values():
        for variation in variations.values():
            samplers, budget = plan.samplers_for(variation), plan.budget_for(variation)
            # a member with gradients also goes back through the network
            weight = sum(1 + BACKWARD * each.gradient for each in samplers) / len(samplers)
            count = budget * plan.chains * plan.search_seeds
            evaluations += count
            seconds += count * weight * _per_image(scorer, variation, pool, min(plan.chains, BLOCK))
    return Estimate(evaluations, seconds)


def announce_attack(
    scorers: Mapping[str, TensorScorer],
    variations: Mapping[str, Variation],
    pool: Tensor,
    plan: Plan,
    progress: Progress,
) -> None:
    """Say how long the searches will take, before they start."""
    try:
        expected = estimate(scorers, variations, pool, plan)
    except FAILURES:
        # a detector that fails is left out later, with the reason
        return
    announce(progress, expected)


def _per_image(scorer: TensorScorer, variation: Variation, pool: Tensor, block: int) -> float:
    count = min(LOOKED if scorer.device.type == "cpu" else block, block, len(pool))
    moved = variation.to(scorer.device)
    points = moved.domain.draw(count, torch.Generator().manual_seed(0)).to(scorer.device)
    images = pool[:count].to(scorer.device) if variation.conditional else None
    with torch.no_grad():
        return pace(lambda: float(scorer.score_tensor(moved(points, images)).sum())) / count
