"""Zeroth order with momentum: the paper's black-box l-inf attack, as in its code."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler, State, check_positive
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Box


@dataclass
class Momentum(State):
    """Chains with a velocity, in pixels, and how far each coordinate may go."""

    velocity: Tensor
    low: Tensor
    high: Tensor


@dataclass(frozen=True)
class ZerothOrder(Sampler):
    r"""Descent along random directions, whose slope is a difference of two energies.

    .. math:: e = h\xi, \quad g = \frac{E(x+e) - E(x)}{h}\,e, \quad v \leftarrow \alpha g + \beta v, \quad
              x \leftarrow \Pi(x - v)

    in pixels, with :math:`\Pi` into the ball and into [0, 1], and with :math:`\alpha` and :math:`h` halved every so
    many steps. The paper calls it coordinate descent; its code takes full Gaussian directions, and so do we. A step
    costs two evaluations, of which :math:`x + e`, which may lie outside of the ball, is not a candidate for the
    minimum. The difference of two close energies drowns in bf16, so the search stays in float32.

    Parameters
    ----------
    step : :math:`\alpha`.
    reach : :math:`h`.
    momentum : :math:`\beta`.
    halve_every : steps after which :math:`\alpha` and :math:`h` are halved.
    """

    name = "zeroth_order"
    half = False

    step: float = 0.1
    reach: float = 0.005
    momentum: float = 0.999
    halve_every: int = 2000

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step, reach=self.reach, halve_every=self.halve_every)
        if not 0 <= self.momentum < 1:
            raise OodscopeError(f"{self.name}: momentum must be in [0, 1), not {self.momentum}")

    @property
    def evaluations(self) -> int:
        return 2

    def begin(self, target: Target, start: Tensor) -> Momentum:
        if not isinstance(target.domain, Box):
            raise OodscopeError(f"{self.name}: attacks within a box, such as an l-inf ball; use mh on a sphere")
        plain = super().begin(target, start)
        low, high = _limits(target, start)
        return Momentum(plain.points, plain.energy, plain.accepted, torch.zeros_like(start), low, high)

    def move(self, target: Target, state: Momentum, number: int) -> None:
        halved = 0.5 ** (number // self.halve_every)
        step, reach, width = self.step * halved, self.reach * halved, 2 * target.radius
        direction = reach * target.noise.normal(*state.points.shape)
        rise = target.probe(state.points + direction / width) - state.energy
        gradient = direction * (rise / reach).to(direction).unsqueeze(1)
        state.velocity = step * gradient + self.momentum * state.velocity
        state.points = (state.points - state.velocity / width).clamp(state.low, state.high)
        state.energy = target.visit(state.points)
        state.accepted = state.accepted + 1


def _limits(target: Target, points: Tensor) -> tuple[Tensor, Tensor]:
    """Where pixels reach the ball or black and white; the unit cube, where parameters are not pixels."""
    low, high = torch.zeros_like(points), torch.ones_like(points)
    if target.images is None or target.images[0].numel() != points.shape[1]:
        return low, high
    pixels = target.images.flatten(1).to(points)
    return (0.5 - pixels / (2 * target.radius)).clamp(min=0), (0.5 + (1 - pixels) / (2 * target.radius)).clamp(max=1)
