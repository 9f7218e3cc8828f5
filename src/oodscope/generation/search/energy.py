r"""Energy: a detector's score on a scale that means the same for every detector.

Metropolis-Hastings weighs differences of energies against a temperature, so a monotone change of a score, harmless to
every ranking, changes the law that is sampled. Two scales make detectors comparable at :math:`T = 1`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.base.hashing import fingerprint

FLOOR = 1e-12
"""The least standard deviation that a score is divided by."""

EnergyOf = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Standardised:
    r"""Scores with the mean 0 and the variance 1 of in-distribution validation images, as in the paper.

    .. math:: E(x) = \frac{s(x) - \mu}{\max(\sigma, 10^{-12})}
    """

    mean: float
    scale: float

    @classmethod
    def of(cls, id_val_scores: ArrayLike) -> "Standardised":
        """From the scores of in-distribution **validation** images."""
        scores = _checked(id_val_scores)
        return cls(float(scores.mean()), max(float(scores.std()), FLOOR))

    def on(self, device: torch.device) -> EnergyOf:
        """The map, for scores on a device."""
        return lambda scores: (scores - self.mean) / self.scale

    def describe(self) -> dict[str, object]:
        """Plain JSON values: what a result records."""
        return {"name": "standardised", "mean": self.mean, "scale": self.scale}


class RankProbit:
    r"""Scores as normal quantiles of their rank among in-distribution validation images.

    .. math:: E(x) = \Phi^{-1}\!\Big(\frac{r(x) + \tfrac12}{n + 1}\Big)

    with the mid-rank :math:`r`, linear between neighbouring validation scores. It is the same for every monotone change
    of a score, whatever the tails of the score look like. Beyond the validation scores it goes on as a straight line
    with the slope :math:`1/\sigma` of ``Standardised``: outliers lie there, and a chain on a plateau would be lost.
    """

    def __init__(self, id_val_scores: ArrayLike) -> None:
        scores = _checked(id_val_scores)
        values, counts = np.unique(scores, return_counts=True)
        if len(values) < 2:
            raise DetectorError("rank energies need validation scores that differ; these are all the same")
        # numbers below plus half of those at the value: between 1/2 and n - 1/2
        middle = np.cumsum(counts) - counts / 2
        self.values: NDArray[np.float64] = values
        self.energies: NDArray[np.float64] = ndtri((middle + 0.5) / (len(scores) + 1))
        self.slope = 1 / max(float(scores.std()), FLOOR)

    def on(self, device: torch.device) -> EnergyOf:
        """The map, for scores on a device."""
        kind = torch.float32 if device.type == "mps" else torch.float64
        values = torch.as_tensor(self.values, dtype=kind, device=device)
        energies = torch.as_tensor(self.energies, dtype=kind, device=device)
        slope = self.slope

        def energy(scores: Tensor) -> Tensor:
            right = torch.searchsorted(values, scores.contiguous()).clamp(1, len(values) - 1)
            left = right - 1
            share = (scores - values[left]) / (values[right] - values[left])
            between = torch.lerp(energies[left], energies[right], share.clamp(0, 1))
            return between + slope * ((scores - values[-1]).clamp(min=0) + (scores - values[0]).clamp(max=0))

        return energy

    def describe(self) -> dict[str, object]:
        """Plain JSON values: what a result records."""
        return {"name": "rank-probit", "scores": fingerprint(self.values, self.energies)}


Energy = Standardised | RankProbit


def _checked(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    if len(values) < 2:
        raise DetectorError(f"an energy needs the scores of two validation images or more, got {len(values)}")
    if not np.isfinite(values).all():
        raise DetectorError(f"validation scores are NaN or infinite in {int((~np.isfinite(values)).sum())} rows")
    return values
