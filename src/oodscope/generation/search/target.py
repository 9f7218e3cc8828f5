"""Target: the energy landscape of one block of chains, as a sampler sees it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.base.hashing import fingerprint
from oodscope.generation.search.energy import EnergyOf
from oodscope.generation.variations.domain import Domain

AHEAD = 64
"""Steps that are drawn at once, if they are small: one launch instead of many."""
NUMBERS = 2**22
"""Numbers that are drawn at once at most."""


class Noise:
    """A stream of random numbers that depends on the seed and the number of the block, and on nothing else.

    Draws of one shape are made several at a time and handed out one by one. What the n-th call returns depends on the
    calls before it only, so a longer search begins like a shorter one.
    """

    def __init__(self, seed: int, block: int, device: torch.device) -> None:
        number = int(fingerprint(["search", seed, block])[:15], 16)
        self.generator = torch.Generator(device).manual_seed(number)
        self._waiting: dict[tuple[str, tuple[int, ...]], list[Tensor]] = {}

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return self._next("normal", shape)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers from [0, 1)."""
        return self._next("uniform", shape)

    def _next(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        waiting = self._waiting.setdefault((kind, shape), [])
        if not waiting:
            numbers = torch.Size(shape).numel()
            draw = torch.randn if kind == "normal" else torch.rand
            many = (max(1, min(AHEAD, NUMBERS // numbers)), *shape)
            waiting.extend(reversed(draw(many, generator=self.generator, device=self.generator.device).unbind()))
        return waiting.pop()


class Visits:
    """The running minimum of each chain over all states that it visited, at several budgets.

    Nothing here asks the device for a number: evaluations are counted on the host, where their number is known
    beforehand, and scores that are not finite are noted and reported by ``check``.

    Parameters
    ----------
    budgets : rising numbers of evaluations per chain, not counting the start.
    """

    def __init__(self, chains: int, dimension: int, budgets: Sequence[int], device: torch.device) -> None:
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.budgets = tuple(budgets)
        self.count = 0
        self.lowest = torch.full((chains,), torch.inf, dtype=kind, device=device)
        self.points = torch.zeros(chains, dimension, device=device)
        self.improved_at = torch.zeros(chains, dtype=torch.int64, device=device)
        self._broken_at = torch.full((chains,), -1, dtype=torch.int64, device=device)
        self._reached: list[Tensor] = []
        self._begun = False

    def begin(self) -> None:
        """What was evaluated until now was the start, which costs nothing."""
        self._begun = True

    def spend(self, evaluations: int) -> None:
        """Count evaluations of every chain that are about to be made."""
        if not self._begun:
            return
        self.count += evaluations
        while len(self._reached) < len(self.budgets) and self.count > self.budgets[len(self._reached)]:
            self._reached.append(self.lowest.clone())

    def see(self, points: Tensor, scores: Tensor) -> None:
        """Remember evaluated states, ``[R * chains, D]`` where each chain has R replicas."""
        chains = len(self.lowest)
        broken = ~scores.view(-1, chains).isfinite().all(dim=0)
        # masked_fill, because torch.where sends its number to the device and waits for it
        self._broken_at = self._broken_at.masked_fill(broken & (self._broken_at < 0), self.count)
        if len(scores) > chains:
            scores, replica = scores.view(-1, chains).min(dim=0)
            points = points.view(-1, *self.points.shape)[replica, torch.arange(chains, device=points.device)]
        lower = scores < self.lowest
        self.lowest = torch.where(lower, scores, self.lowest)
        self.points = torch.where(lower.unsqueeze(1), points, self.points)
        self.improved_at = self.improved_at.masked_fill(lower, self.count)

    def at_budgets(self) -> Tensor:
        """``[B, chains]`` running minima, each over at most as many evaluations as the budget allows."""
        rest = len(self.budgets) - len(self._reached)
        return torch.stack([*self._reached, *[self.lowest] * rest])

    def check(self, scorer: str, first_chain: int) -> None:
        """Refuse scores that were NaN or infinite, naming the first chain that met one and when."""
        broken = (self._broken_at >= 0).nonzero().flatten().tolist()
        if broken:
            when = int(self._broken_at[broken[0]])
            raise DetectorError(
                f"{scorer}: scores were NaN or infinite in {len(broken)} of {len(self.lowest)} chains of this block "
                f"(chain {first_chain + broken[0]} at evaluation {when})"
            )


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
