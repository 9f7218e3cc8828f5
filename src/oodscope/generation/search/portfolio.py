"""A portfolio: several samplers share the evaluations of one search, and each chain keeps the lowest that any found."""

import json
from collections.abc import Sequence
from dataclasses import replace

import torch

from oodscope.base.errors import DataError
from oodscope.base.hashing import canonical_json
from oodscope.generation.samplers.auto_projected_gradient import AutoProjectedGradient
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.parallel_tempering import ParallelTempering
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.samplers.square import Square
from oodscope.generation.samplers.zeroth_order import ZerothOrder
from oodscope.generation.search.result import SearchResult
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Boundary
from oodscope.generation.variations.linf import LInf

NAME = "portfolio"


def default_samplers(variation: Variation, boundary: Boundary = "reflect") -> tuple[Sampler, ...]:
    """The portfolio of a variation.

    No single sampler is best against every detector: a warm walk crosses barriers, a cold one digs, tempering does
    both slowly, random draws know no barrier, and gradients dig where the score has any. In the
    :math:`l_\\infty` ball, with thousands of coordinates, walks find nothing: descent along random directions, squares,
    and gradients.
    """
    if isinstance(variation, LInf):
        return (ZerothOrder(), Square(), AutoProjectedGradient())
    return (
        MetropolisHastings(boundary=boundary),
        MetropolisHastings(temperature=0.1, boundary=boundary),
        ParallelTempering(temperature=0.1, boundary=boundary),
        RandomSearch(),
        AutoProjectedGradient(),
    )


def affordable(samplers: Sequence[Sampler], budget: int) -> tuple[Sampler, ...]:
    """The members that can make a step with an equal share of a budget; the costliest are left out first."""
    members = tuple(samplers)
    while len(members) > 1 and budget // len(members) < max(each.evaluations for each in members):
        costliest = max(range(len(members)), key=lambda place: (members[place].evaluations, place))
        members = members[:costliest] + members[costliest + 1 :]
    return members


def merge_searches(results: Sequence[SearchResult]) -> SearchResult:
    """One result from searches of the same chains by several samplers: for each chain, the lowest of all.

    Its budgets count the evaluations of all members together, so that a portfolio of K compares with one sampler that
    had K times as many.

    Parameters
    ----------
    results : with the same chains, scorer, variation and budgets, in the order of the members.
    """
    first, members = results[0], len(results)
    if len(results) == 1:
        return first
    if any((each.budgets, len(each), each.blocks) != (first.budgets, len(first), first.blocks) for each in results):
        raise DataError("a portfolio joins searches of the same chains with the same budget")
    scores = torch.stack([each.scores for each in results])
    winner = scores.argmin(dim=0)
    rows = torch.arange(len(first))

    def of_winner(name: str) -> torch.Tensor:
        return torch.stack([getattr(each, name) for each in results])[winner, rows]

    description = {
        **first.description,
        "sampler": {"name": NAME, "members": [each.sampler for each in results]},
        "precision": "/".join(dict.fromkeys(str(each.description["precision"]) for each in results)),
        "budgets": [members * budget for budget in first.budgets],
    }
    return replace(
        first,
        points=of_winner("points"),
        scores=of_winner("scores"),
        searched=of_winner("searched"),
        at_budget=torch.stack([each.at_budget for each in results]).amin(dim=0),
        acceptance=of_winner("acceptance"),
        improved_at=members * of_winner("improved_at"),
        last=of_winner("last"),
        evaluations=sum(each.evaluations for each in results),
        seconds=sum(each.seconds for each in results),
        description=json.loads(canonical_json(description)),
        notes=tuple(dict.fromkeys(note for each in results for note in each.notes)),
    )
