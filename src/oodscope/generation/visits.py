"""Visits: what a block of chains has seen so far, kept on the device."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError


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
