"""A look at what a search walks through: one outlier's scores as a map, paths on it, and samplers side by side."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.coordinate_descent import CoordinateDescent
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.search.search import search
from oodscope.generation.search.target import Noise, Target, Visits
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.plane import Plane
from oodscope.metrics.scores import FloatArray
from oodscope.models.classifier.network import full_precision
from oodscope.runs.attack.attacked import Attacked, found_images
from oodscope.runs.attack.plan import Plan, curve
from oodscope.runs.attack.run import Landscape
from oodscope.runs.attack.trace import AttackTrace

SIDE, STEPS, CHAINS = 33, 200, 64
"""Points along a coordinate, steps of a path at most, and source images that samplers are compared on (as many as in
the paper): little beside a search."""

WALKED = (MetropolisHastings.name, CoordinateDescent.name)


def mapped(variations: Mapping[str, Variation]) -> str:
    """The first variation that can be drawn as a map: two named coordinates, and a place that changes nothing."""
    for name, each in variations.items():
        if each.conditional and each.identity and len(each.parameters) == each.domain.dimension > 1:
            return name
    raise OodscopeError(f"no landscape of {', '.join(variations)}: it needs named coordinates; attack with affine too")


def look(trace: AttackTrace, name: str, variation: Variation, sources: Tensor, plan: Plan) -> Landscape:
    """The landscape of the outlier whose score fell most, over the two coordinates that lower it most by themselves.

    Two samplers walk through this plane from the image as it is: Metropolis-Hastings and coordinate descent. Over all
    coordinates, samplers are compared on the first source images, each with the evaluations that the search had.
    """
    attacked = trace.attacked
    samplers, budgets = _samplers(plan, variation), curve(plan.budget_for(variation))
    chain = int(np.argmax(trace.clean - trace.scores(name)))
    image, whole = sources[chain : chain + 1].to(attacked.scorer.device), variation.to(attacked.scorer.device)
    plane = Plane(whole, *_steepest(attacked, whole, image))
    steps = torch.linspace(0, 1, SIDE, device=image.device)
    down, across = torch.meshgrid(steps, steps, indexing="ij")
    grid = torch.stack([across.flatten(), down.flatten()], dim=1)
    x, y = plane.natural(grid).view(SIDE, SIDE, 2).double().cpu().numpy().transpose(2, 0, 1)
    return Landscape(
        detector=attacked.name,
        variation=name,
        chain=chain,
        coordinates=plane.parameters,
        x=x[0],
        y=y[:, 0],
        scores=_scores(attacked, plane, grid, image).reshape(SIDE, SIDE),
        paths={each: _path(samplers[each], attacked, plane, image, plan) for each in WALKED},
        budgets=budgets,
        lowest={each: _lowest(samplers[each], trace, whole, sources, budgets, plan) for each in samplers},
    )


def _samplers(plan: Plan, variation: Variation) -> dict[str, Sampler]:
    """Those that are compared, by name: the paper's, its rivals, and the one that was asked for."""
    plain = MetropolisHastings(boundary=plan.boundary)
    rivals: dict[str, Sampler] = {each.name: each for each in (plain, CoordinateDescent(), RandomSearch())}
    own = plan.samplers_for(variation)
    return {own[0].name: own[0]} | {**rivals, own[0].name: own[0]} if len(own) == 1 else rivals


def _scores(attacked: Attacked, variation: Variation, points: Tensor, image: Tensor) -> FloatArray:
    pixels = found_images(variation, points, image.expand(len(points), -1, -1, -1))
    return attacked.standardised(attacked.score(pixels))


def _steepest(attacked: Attacked, whole: Variation, image: Tensor) -> tuple[int, int]:
    """The two coordinates along which the lowest score lies lowest, all others left where they change nothing."""
    rest = torch.tensor(whole.identity, device=image.device)
    lines = rest.repeat(len(rest), SIDE, 1)
    for place, line in enumerate(lines):
        line[:, place] = torch.linspace(0, 1, SIDE, device=image.device)
    lowest = _scores(attacked, whole, lines.flatten(0, 1), image).reshape(len(rest), SIDE).min(axis=1)
    first, second = sorted(np.argsort(lowest, kind="stable")[:2].tolist())
    return first, second


def _path(sampler: Sampler, attacked: Attacked, plane: Plane, image: Tensor, plan: Plan) -> FloatArray:
    """Every state of one chain that starts at the image as it is: both coordinates, and the score."""
    scorer, steps = attacked.scorer, min(STEPS, plan.budget) // sampler.evaluations
    start = torch.tensor([plane.identity], device=image.device)
    target = Target(
        lambda points, images: scorer.score_tensor(plane(points, images)),
        image,
        plan.energy_of(attacked).on(scorer.device),
        plane.domain,
        Noise(plan.seed, 0, scorer.device),
        Visits(1, 2, (steps,), scorer.device),
    )
    with full_precision(scorer.device), torch.no_grad():
        state = sampler.begin(target, start)
        states = [state.points]
        for step in range(steps):
            sampler.move(target, state, step)
            states.append(state.points)
    points = torch.cat(states)
    natural = plane.natural(points).double().cpu().numpy()
    return np.column_stack([natural, _scores(attacked, plane, points, image)])


def _lowest(
    sampler: Sampler, trace: AttackTrace, variation: Variation, sources: Tensor, budgets: tuple[int, ...], plan: Plan
) -> FloatArray:
    """The lowest score of the first chains within each budget."""
    attacked = trace.attacked
    result = search(
        attacked.scorer,
        variation,
        sampler,
        budgets,
        sources[:CHAINS],
        energy=plan.energy_of(attacked),
        seed=plan.seed,
        # a few chains are done before a network is compiled for them
        fast=False,
    )
    return attacked.standardised(np.asarray(result.at_budget, dtype=np.float64))
