r"""Energy: a detector's score on a scale that means the same for every detector.

Metropolis-Hastings weighs differences of energies against a temperature, so a monotone change of a score, harmless to
every ranking, changes the law that is sampled. A scale makes detectors comparable at :math:`T = 1`: the paper's, or one
that no monotone change of the score changes.
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
from oodscope.models.classifier.clip import clip

FLOOR = 1e-12
"""The least standard deviation that a score is divided by."""

RELEASED = 1e-3
"""What the paper's released code adds to the deviation: scores that are probabilities spread less than that, and their
searches then run at another temperature."""

EnergyOf = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Standardised:
    r"""Scores with the mean 0 and the variance 1 of in-distribution validation images, as in the paper.

    .. math:: E(x) = \frac{s(x) - \mu}{\max(\sigma, 10^{-12})}
    """

    mean: float
    scale: float

    @classmethod
    def of(cls, id_val_scores: ArrayLike, added: float = 0.0) -> "Standardised":
        """From the scores of in-distribution **validation** images; ``added`` to their deviation."""
        scores = _checked(id_val_scores)
        return cls(float(scores.mean()), max(float(scores.std()) + added, FLOOR))

    def on(self, device: torch.device) -> EnergyOf:
        """The map, for scores on a device."""
        return lambda scores: (scores - self.mean) / self.scale

    def describe(self) -> dict[str, object]:
        """Plain JSON values: what a result records."""
        return {"name": "standardised", "mean": self.mean, "scale": self.scale}


class NormalScores:
    r"""Scores as normal quantiles of their rank in a reference: the same for every monotone change of a score.

    .. math:: E(x) = \Phi^{-1}(F(s(x)))

    F is the distribution of reference scores (mid-ranks, linear between neighbours), in which every sample has the same
    weight however many images it holds. Beyond the reference it goes on as a straight line, so that a chain is not lost
    on a plateau. ``rank_probit`` takes ID validation images alone, and outliers, which lie beyond them, meet the line.
    ``canonical`` takes ID validation and the source images: everything between the most ID-like validation image and
    the most OOD source has a rank, and a search for the lowest score happens there.

    Parameters
    ----------
    samples : scores of the reference, one array for each kind of image.
    slope : of the line beyond the reference. None: that of the reference's own outer twentieth on each side.
    """

    def __init__(self, *samples: ArrayLike, slope: float | None = None) -> None:
        checked = [_checked(each) for each in samples]
        weights = np.concatenate([np.full(len(each), 1 / (len(checked) * len(each))) for each in checked])
        scores, total = np.concatenate(checked), sum(map(len, checked))
        values, places = np.unique(scores, return_inverse=True)
        if len(values) < 2:
            raise DetectorError("rank energies need validation scores that differ; these are all the same")
        mass = np.bincount(places, weights)
        # below plus half of those at the value, drawn in so that neither end is certain
        middle = np.cumsum(mass) - mass / 2
        self.values: NDArray[np.float64] = values
        self.energies: NDArray[np.float64] = ndtri((middle * total + 0.5) / (total + 1))
        self.slopes = (slope, slope) if slope is not None else _outer_slopes(self.values, self.energies)

    def on(self, device: torch.device) -> EnergyOf:
        """The map, for scores on a device."""
        kind = torch.float32 if device.type == "mps" else torch.float64
        values = torch.as_tensor(self.values, dtype=kind, device=device)
        energies = torch.as_tensor(self.energies, dtype=kind, device=device)
        below, above = self.slopes

        def energy(scores: Tensor) -> Tensor:
            right = torch.searchsorted(values, scores.detach().to(kind).contiguous()).clamp(1, len(values) - 1)
            left = right - 1
            share = (scores - values[left]) / (values[right] - values[left])
            between = torch.lerp(energies[left], energies[right], clip(share, 0, 1))
            # relu, whose derivative at 0 is 0: at an end of the reference the slope is that of its last piece alone
            return between + above * (scores - values[-1]).relu() - below * (values[0] - scores).relu()

        return energy

    def describe(self) -> dict[str, object]:
        """Plain JSON values: what a result records."""
        return {"name": "normal-scores", "scores": fingerprint(self.values, self.energies), "slopes": self.slopes}


def rank_probit(id_val_scores: ArrayLike) -> NormalScores:
    """Normal scores among ID validation images alone, beyond them with the slope of ``Standardised``."""
    return NormalScores(id_val_scores, slope=1 / max(float(_checked(id_val_scores).std()), FLOOR))


def _outer_slopes(values: NDArray[np.float64], energies: NDArray[np.float64]) -> tuple[float, float]:
    """Energy per score over the lowest and the highest twentieth of the values."""
    part = max(1, len(values) // 20)
    ends = ((part, 0), (-1, -1 - part))
    below, above = (
        float(energies[high] - energies[low]) / max(float(values[high] - values[low]), FLOOR) for high, low in ends
    )
    return below, above


Energy = Standardised | NormalScores


def _checked(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    if len(values) < 2:
        raise DetectorError(f"an energy needs the scores of two validation images or more, got {len(values)}")
    if not np.isfinite(values).all():
        raise DetectorError(f"validation scores are NaN or infinite in {int((~np.isfinite(values)).sum())} rows")
    return values
