"""Samplers: how a search moves. One file each; ``create_sampler`` knows them by name."""

from typing import Any

from oodscope.base.errors import OodscopeError, UnknownNameError, did_you_mean
from oodscope.generation.samplers.base import Sampler, State
from oodscope.generation.samplers.coordinate_descent import CoordinateDescent
from oodscope.generation.samplers.langevin import Langevin
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.parallel_tempering import ParallelTempering
from oodscope.generation.samplers.projected_gradient import ProjectedGradient
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.samplers.square import Square
from oodscope.generation.samplers.zeroth_order import ZerothOrder

SAMPLERS: dict[str, type[Sampler]] = {
    each.name: each
    for each in (
        MetropolisHastings,
        ParallelTempering,
        RandomSearch,
        CoordinateDescent,
        ZerothOrder,
        Square,
        ProjectedGradient,
        Langevin,
    )
}


def create_sampler(name: str, **settings: Any) -> Sampler:
    """The sampler called ``name``; unknown names and settings suggest the nearest."""
    if name not in SAMPLERS:
        raise UnknownNameError("sampler", name, SAMPLERS, f"Samplers: {', '.join(SAMPLERS)}")
    known = tuple(SAMPLERS[name].__dataclass_fields__)  # type: ignore[attr-defined]
    for setting in settings:
        if setting not in known:
            near = did_you_mean(setting, known)
            raise OodscopeError(f"{name}: unknown setting {setting!r}.{near} Settings: {', '.join(known) or 'none'}")
    return SAMPLERS[name](**settings)


__all__ = [
    "SAMPLERS",
    "CoordinateDescent",
    "Langevin",
    "MetropolisHastings",
    "ParallelTempering",
    "ProjectedGradient",
    "RandomSearch",
    "Sampler",
    "Square",
    "State",
    "ZerothOrder",
    "create_sampler",
]
