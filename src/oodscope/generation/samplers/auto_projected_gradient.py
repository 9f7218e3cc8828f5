"""Auto-PGD: the white-box attack without a step to choose, begun again from several starts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler, check_positive, count_from_zero
from oodscope.generation.samplers.projected_gradient import Slope
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Box

MOMENTUM, SUCCESSES = 0.75, 0.75
"""How much of a step is the new one, and the share of steps between two checkpoints that should go down."""


@dataclass
class Descent(Slope):
    """Chains that remember the lowest state of their present start, and whether their step still serves."""

    before: Tensor
    step: Tensor
    best: Tensor
    best_energy: Tensor
    best_gradient: Tensor
    downhill: Tensor
    step_at_checkpoint: Tensor
    best_at_checkpoint: Tensor


@dataclass(frozen=True)
class AutoProjectedGradient(Sampler):
    r"""Projected gradient with momentum, whose step is halved where it stops to serve (Croce and Hein, ICML 2020).

    .. math:: y = \Pi(z_k - \eta\,\mathrm{sign}\,\nabla E), \qquad
              z_{k+1} = \Pi\big(z_k + \alpha (y - z_k) + (1 - \alpha)(z_k - z_{k-1})\big), \quad \alpha = .75

    At checkpoints (22 %, then ever closer) a chain halves :math:`\eta` and goes back to its lowest state, if fewer than
    three quarters of its steps went down, or if neither step nor lowest state changed since the last checkpoint. After
    ``length`` steps all chains begin again at a random place; the first start is the image as it is. Each evaluation is
    one forward and one backward pass.

    Parameters
    ----------
    step : the first :math:`\eta`, of the unit cube: 1/2 is :math:`\varepsilon` of an :math:`l_\infty` ball. On a sphere
        the gradient is divided by its length instead of taken by its signs.
    length : steps from one start.
    """

    name = "apgd"
    gradient = True

    step: float = 0.5
    length: int = 50

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step)
        if self.length < 2:
            raise OodscopeError(f"{self.name}: length is the number of steps from one start, 2 or more")

    @property
    def checkpoints(self) -> frozenset[int]:
        """Steps of a start at which the step is judged: :math:`p_{j+1} = p_j + \\max(p_j - p_{j-1} - .03, .06)`."""
        shares = [0.0, 0.22]
        while shares[-1] < 1:
            shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
        return frozenset(round(share * self.length) for share in shares[1:] if share < 1)

    def begin(self, target: Target, start: Tensor) -> Descent:
        return self._from(target, start, count_from_zero(start))

    def move(self, target: Target, state: Descent, number: int) -> None:
        step = number % self.length
        if step == 0 and number:
            drawn = self._from(target, target.domain.draw(target.chains, target.noise.generator), state.accepted + 1)
            vars(state).update(vars(drawn))
            return
        new = self._next(target, state, step)
        state.before, state.points = state.points, new
        before = state.energy
        state.energy, state.gradient = target.visit_with_gradient(new)
        state.accepted, state.downhill = state.accepted + 1, state.downhill + (state.energy < before)
        lower = state.energy < state.best_energy
        state.best_energy = torch.where(lower, state.energy, state.best_energy)
        state.best = torch.where(lower.unsqueeze(1), new, state.best)
        state.best_gradient = torch.where(lower.unsqueeze(1), state.gradient, state.best_gradient)
        if step + 1 in self.checkpoints:
            self._judge(state, step + 1)

    def _from(self, target: Target, start: Tensor, accepted: Tensor) -> Descent:
        energy, gradient = target.visit_with_gradient(start)
        step = torch.full((len(start), 1), self.step, dtype=start.dtype, device=start.device)
        none = torch.zeros_like(accepted)
        return Descent(start, energy, accepted, gradient, start, step, start, energy, gradient, none, step, energy)

    def _next(self, target: Target, state: Descent, step: int) -> Tensor:
        box = isinstance(target.domain, Box)
        way = state.gradient.sign() if box else torch.nn.functional.normalize(state.gradient, dim=1)
        plain = target.domain.move(state.points, -state.step * way, "clamp")
        if step == 0 or state.before is state.points:
            return plain
        change = MOMENTUM * (plain - state.points) + (1 - MOMENTUM) * (state.points - state.before)
        return target.domain.move(state.points, change, "clamp")

    def _judge(self, state: Descent, done: int) -> None:
        """Halve the step of chains that it does not serve, and send them back to their lowest state."""
        since = done - max((each for each in self.checkpoints if each < done), default=0)
        stuck = (state.step == state.step_at_checkpoint).squeeze(1) & (state.best_energy == state.best_at_checkpoint)
        halve = (state.downhill < SUCCESSES * since) | stuck
        state.step_at_checkpoint, state.best_at_checkpoint = state.step, state.best_energy
        state.step = torch.where(halve.unsqueeze(1), state.step / 2, state.step)
        for name in ("points", "before"):
            setattr(state, name, torch.where(halve.unsqueeze(1), state.best, getattr(state, name)))
        state.gradient = torch.where(halve.unsqueeze(1), state.best_gradient, state.gradient)
        state.energy = torch.where(halve, state.best_energy, state.energy)
        state.downhill = torch.zeros_like(state.downhill)
