"""Target: the energy landscape of one block of chains, as a sampler sees it."""

from collections.abc import Callable

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.generation.domains import Domain
from oodscope.generation.energy import EnergyOf
from oodscope.generation.noise import Noise
from oodscope.generation.visits import Visits

Pipeline = Callable[[Tensor, Tensor | None], Tensor]
"""Points ``[N, D]`` and source images (None for a generator) to scores ``[N]``, larger = more OOD."""


class Target:
    """One block of chains: evaluates points, counts evaluations and remembers the lowest score of each chain.

    Parameters
    ----------
    pipeline : points and images to scores.
    images : ``[chains, C, H, W]`` on the device, None for a generator.
    energy_of : scores to energies.
    domain : where points live.
    noise : the block's random numbers.
    visits : the block's memory.
    replicas : points per chain in one evaluation; row ``r * chains + i`` is replica r of chain i.
    radius : half the width of the unit cube in pixels, where the variation is an l-inf ball; otherwise 1/2.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        images: Tensor | None,
        energy_of: EnergyOf,
        domain: Domain,
        noise: Noise,
        visits: Visits,
        replicas: int = 1,
        radius: float = 0.5,
    ) -> None:
        self.chains = len(visits.lowest)
        self.domain = domain
        self.noise = noise
        self.replicas = replicas
        self.radius = radius
        self.images = images
        self._pipeline = pipeline
        self._repeated = images if images is None or replicas == 1 else images.repeat(replicas, 1, 1, 1)
        self._energy_of = energy_of
        self._visits = visits

    def visit(self, points: Tensor) -> Tensor:
        """Energies of states that count: the lowest score seen is remembered with its point."""
        scores = self._scores(points)
        self._visits.see(points, scores)
        return self._energy_of(scores)

    def probe(self, points: Tensor) -> Tensor:
        """Energies of points that only inform, and may lie outside of the domain: counted, not remembered."""
        return self._energy_of(self._scores(points))

    def visit_with_gradient(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Energies of states that count, and their gradients with respect to the points."""
        leaf = points.detach().requires_grad_()
        with torch.enable_grad():
            scores = self._scores(leaf)
            energies = self._energy_of(scores)
            if not energies.requires_grad:
                raise DetectorError("no gradient flows from the score to the points; use a sampler that needs none")
            (gradient,) = torch.autograd.grad(energies.sum(), leaf)
        self._visits.see(points, scores.detach())
        return energies.detach(), gradient

    def _scores(self, points: Tensor) -> Tensor:
        self._visits.spend(len(points) // self.chains)
        return self._pipeline(points, self._repeated)
