"""VRA: silence small features, clip large ones, amplify those between."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.quantiles import percentiles
from oodscope.detectors.rectifier import Rectifier


class VRA(Rectifier):
    r"""Features that are unusually small or unusually large say little; those between count more.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\tilde h + b, \qquad
              \tilde h_i = \begin{cases}0 & h_i < l\\ h_i + \gamma & l \le h_i \le u\\ u & h_i > u\end{cases}

    with :math:`l` and :math:`u` percentiles of all feature values on held-out in-distribution images (on the
    training images, where there are no others). After a ReLU many features are zero: a low percentile within them
    makes ``vra`` the same as ``react``. The grid is the paper's; it chooses on noise images, so its table names
    no default: the ones here are from the middle of its ranges.

    Parameters
    ----------
    high, low : the percentiles that define :math:`u` and :math:`l`; the paper searches 80 to 99 and 50 to 70.
    gamma : what is added to the features between; 0 is the paper's VRA, its VRA+ searches 0.2 to 0.7.
    clip_low : lift small features to :math:`l`, as OpenOOD's code does, instead of the paper's zero. Parity with
        OpenOOD is ``high=90, low=10, clip_low=True``.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "vra"
    paper = Paper(
        "VRA: Variational Rectified Activation for Out-of-distribution Detection", "Xu et al.", "NeurIPS 2023"
    )
    needs = Rectifier.needs | Needs.HELD_OUT
    grid = {"high": (80, 85, 90, 95, 99), "low": (50, 60, 65, 70), "gamma": (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)}

    def __init__(
        self,
        high: float = 95,
        low: float = 60,
        gamma: float = 0.0,
        clip_low: bool = False,
        logit_score: LogitScore | None = None,
    ) -> None:
        self.high = high
        self.low = low
        self.gamma = gamma
        self.clip_low = clip_low
        self.logit_score = logit_score

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        self._check_parameters()
        self.lower_, self.upper_ = percentiles(val, "features", (self.low, self.high), self.device)

    def _check_parameters(self) -> None:
        if self.gamma < 0:
            raise DetectorError(f"vra: gamma must not be negative, not {self.gamma}")
        if not 0 <= self.low < self.high <= 100:
            raise DetectorError(f"vra: needs 0 <= low < high <= 100, not low={self.low}, high={self.high}")

    def _rectify(self, features: Tensor) -> Tensor:
        if self.clip_low:
            return features.clamp(self.lower_, self.upper_)
        # as numbers: a choice between values by truth values is several times slower
        loud = torch.full_like(features, self.lower_).le_(features)
        clipped = features.clamp(max=self.upper_)
        if self.gamma:
            clipped = clipped + self.gamma * (features <= self.upper_)
        return loud.mul_(clipped)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All percentiles from the same two passes."""
        wanted = sorted({candidate[key] for candidate in candidates for key in ("high", "low")})
        value = dict(zip(wanted, percentiles(val, "features", wanted, self.device)))
        for candidate in candidates:
            trial = clone(self).set_params(**candidate).to(self.device)
            trial._check_parameters()
            trial.lower_, trial.upper_ = value[candidate["low"]], value[candidate["high"]]
            yield [trial.score(activations) for activations in judged]
