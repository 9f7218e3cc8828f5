r"""Sampling noise of a mean of placements, image by image or class by class, and the interval it gives an AUROC.

DeLong's interval asks: what if other images of *these classes* had been drawn? A reader of a benchmark asks more
often: what if other *classes* had been drawn? Images of a class err together, so the second answer is wider.
Obuchowski (Biometrics 1997) lets clusters of images vary as wholes,

.. math:: \widehat{\mathrm{Var}}(A) = \sum_{\text{side}} \frac{C}{C-1} \frac{1}{n^2}
          \sum_{c=1}^{C} \Bigl( \sum_{i \in c} (V_i - A) \Bigr)^2 ,

which for clusters of one image is DeLong's variance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.interval import check_level
from oodscope.metrics.ranking.placements import Placements
from oodscope.metrics.scores import FloatArray

FEWEST = 5
"""Classes below which their spread says too little: with 4 classes the t of a 95 % interval is 3.2."""


@dataclass(frozen=True)
class Noise:
    """A standard error, and how well it is known: the degrees of freedom of its estimate."""

    error: float
    freedom: float


def sampling_noise(
    placed: Placements, *, id_classes: ArrayLike | None = None, ood_classes: Mapping[str, ArrayLike] | None = None
) -> Noise:
    """The noise of ``placed.mean``: of other images by default, of other classes where classes are given.

    The sides and sets are independent, so their variances add; the degrees of freedom of the sum are
    Satterthwaite's. One image (or class) on a side leaves its variance unknown, which is an error.

    Parameters
    ----------
    id_classes : the class of each ID image.
    ood_classes : for each OOD set whose classes count as drawn, the class of each image.
    """
    parts = [_cluster_variance(placed.of_id, id_classes, "ID images")]
    for name, values in placed.of_ood.items():
        variance, freedom = _cluster_variance(values, (ood_classes or {}).get(name), f"images of {name}")
        parts.append((variance / len(placed.of_ood) ** 2, freedom))
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / freedom for variance, freedom in parts)
    return Noise(sqrt(total), total**2 / spread if spread > 0.0 else min(freedom for _, freedom in parts))


def logit_interval(value: float, noise: Noise, level: float = 0.95) -> tuple[float, float] | None:
    """Student's interval of an AUROC, symmetric on the logit scale; ``None`` at 0 and 1, where there is no spread."""
    check_level(level)
    if not 0.0 < value < 1.0:
        return None
    reach = -float(stdtrit(noise.freedom, (1.0 - level) / 2.0)) * noise.error / (value * (1.0 - value))
    centre = float(logit(value))
    return float(expit(centre - reach)), float(expit(centre + reach))


def _cluster_variance(values: FloatArray, classes: ArrayLike | None, what: str) -> tuple[float, float]:
    """Variance of the mean of ``values`` if whole classes were drawn again, and its degrees of freedom."""
    residuals = values - values.mean()
    if classes is not None:
        labels = np.asarray(classes)
        if labels.shape != values.shape:
            raise DataError(f"{what}: {values.size} images need as many class labels; their shape is {labels.shape}")
        _, index = np.unique(labels, return_inverse=True)
        residuals = np.bincount(index, weights=residuals)
    clusters = residuals.size
    if clusters < 2:
        raise DataError(f"{what}: {'one class' if classes is not None else 'one image'} has no spread; use 2 or more")
    return float(clusters / (clusters - 1) * (residuals @ residuals) / values.size**2), clusters - 1.0
