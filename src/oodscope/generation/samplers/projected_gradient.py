"""Projected gradient: the white-box attack."""

import math
from dataclasses import dataclass

from torch import Tensor

from oodscope.generation.samplers.base import Sampler, State, check_positive, count_from_zero
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Box
from oodscope.training.perturbation import steepest


@dataclass
class Slope(State):
    """Chains that know which way is up."""

    gradient: Tensor


@dataclass(frozen=True)
class ProjectedGradient(Sampler):
    r"""Steps against the gradient of the energy, brought back into the domain (Madry et al. 2018).

    .. math:: z \leftarrow \Pi\Big(z - \frac{\eta}{\sqrt{t+1}}\,\mathrm{sign}\,\nabla E(g(z))\Big)

    On a sphere the gradient is divided by its length instead of taken by its signs. Each evaluation is one forward
    and one backward pass; the budget counts evaluations.

    Parameters
    ----------
    step : :math:`\eta`.
    """

    name = "pgd"
    gradient = True

    step: float = 0.1

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step)

    def begin(self, target: Target, start: Tensor) -> Slope:
        energy, gradient = target.visit_with_gradient(start)
        return Slope(start, energy, count_from_zero(start), gradient)

    def move(self, target: Target, state: Slope, number: int) -> None:
        box = isinstance(target.domain, Box)
        way = steepest(state.gradient, "linf" if box else "l2")
        state.points = target.domain.move(state.points, -self.step / math.sqrt(number + 1) * way, "clamp")
        state.energy, state.gradient = target.visit_with_gradient(state.points)
        state.accepted = state.accepted + 1
