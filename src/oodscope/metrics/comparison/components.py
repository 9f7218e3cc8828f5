r"""Variance components: how much of a difference is images, classes, seeds and sets, and how many of each would do.

The difference of two detectors on one OOD set of C classes with m images each, N ID images and S networks varies by

.. math:: \mathrm{Var} = \frac{\sigma^2_\text{ID image}}{N} + \frac{1}{C}\Bigl(\sigma^2_\text{class} +
          \frac{\sigma^2_\text{OOD image}}{m}\Bigr) + \frac{\sigma^2_\text{seed}}{S} .

Each component is what one more image, class or seed brings; more of one never makes up for few of another.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import nct
from scipy.stats import t as student

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray


@dataclass(frozen=True)
class Components:
    """The standard deviations of a difference: of one ID image, one OOD image, one class, one seed, one set.

    Parameters
    ----------
    id_image, ood_image, ood_class, seed, ood_set : NaN where a component could not be estimated.
    classes, images, id_images, seeds : what was measured: OOD classes, images of each, ID images, networks.
    """

    id_image: float
    ood_image: float
    ood_class: float
    seed: float = nan
    ood_set: float = nan
    classes: int = 0
    images: float = 0.0
    id_images: int = 0
    seeds: int = 1

    def error(self) -> float:
        """The standard error of the difference with what was measured; unknown components count as 0."""
        return sqrt(sum(variance for variance, _ in self._terms()))

    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of it."""
        terms = [(variance, freedom) for variance, freedom in self._terms() if variance > 0.0]
        total = sum(variance for variance, _ in terms)
        return total**2 / sum(variance**2 / freedom for variance, freedom in terms) if terms else inf

    def power(self, difference: float, alpha: float = 0.05) -> float:
        """The chance to see a true difference in a two-sided t-test at ``alpha``."""
        error, freedom = self.error(), self.freedom()
        if error == 0.0:
            return 1.0
        freedom = min(freedom, 1e6)
        limit = float(student.isf(alpha / 2.0, freedom))
        shift = abs(difference) / error
        return float(nct.sf(limit, freedom, shift) + nct.cdf(-limit, freedom, shift))

    def _terms(self) -> list[tuple[float, float]]:
        classes, seeds = max(self.classes, 1), max(self.seeds, 1)
        return [
            (_square(self.id_image) / max(self.id_images, 1), max(self.id_images - 1.0, 1.0)),
            (
                (_square(self.ood_class) + _square(self.ood_image) / max(self.images, 1.0)) / classes,
                max(classes - 1.0, 1.0),
            ),
            (_square(self.seed) / seeds, max(seeds - 1.0, 1.0)),
        ]


def class_components(
    of_id: FloatArray, of_ood: FloatArray, classes: NDArray[np.int64], *, by_seed: FloatArray | None = None
) -> Components:
    """The components of the difference of two detectors on one set, from contributions of images to it.

    The spread of class means holds that of their images too, which is taken off (the analysis of variance of one way,
    with the harmonic mean of the class sizes).

    Parameters
    ----------
    of_id, of_ood : what each image contributes to the difference; for AUROC, differences of placements.
    classes : the class of each OOD image.
    by_seed : the difference in each of several networks.
    """
    if of_ood.shape != classes.shape:
        raise DataError(f"{of_ood.size} OOD images need as many classes; there are {classes.size}")
    index = np.unique(classes, return_inverse=True)[1]
    sizes = np.bincount(index).astype(np.float64)
    if sizes.size < 2 or sizes.max() < 2.0 or of_id.size < 2:
        raise DataError("variance components need two classes, one of them with two images, and two ID images")
    means = np.bincount(index, of_ood) / sizes
    within = float(np.sum((of_ood - means[index]) ** 2) / (of_ood.size - sizes.size))
    per_class = float(sizes.size / np.sum(1.0 / sizes))
    between = max(float(np.var(means, ddof=1)) - within / per_class, 0.0)
    seeds = 1 if by_seed is None else len(by_seed)
    return Components(
        id_image=float(np.std(of_id, ddof=1)),
        ood_image=sqrt(within),
        ood_class=sqrt(between),
        seed=nan if by_seed is None or seeds < 2 else float(np.std(by_seed, ddof=1)),
        classes=sizes.size,
        images=per_class,
        id_images=of_id.size,
        seeds=seeds,
    )


def typical(components: list[Components]) -> Components:
    """The root mean square of each component over several pairs or sets; medians of what was measured."""
    if not components:
        raise DataError("there is no pair of detectors on a set with classes")

    def mean(name: str) -> float:
        known = [value for each in components if not isnan(value := getattr(each, name))]
        return sqrt(float(np.mean(np.square(known)))) if known else nan

    middle = {name: float(np.median([getattr(each, name) for each in components])) for name in _MEASURED}
    return Components(
        **{name: mean(name) for name in ("id_image", "ood_image", "ood_class", "seed", "ood_set")},
        classes=round(middle["classes"]),
        images=middle["images"],
        id_images=round(middle["id_images"]),
        seeds=round(middle["seeds"]),
    )


_MEASURED = ("classes", "images", "id_images", "seeds")
MOST = 1_000_000


def needed(
    components: Components, what: str, difference: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """The fewest ``classes``, ``images``, ``id_images`` or ``seeds`` that show a difference, all else as measured.

    ``None`` where a million would not do: the other components alone hide the difference.
    """
    if what not in _MEASURED:
        raise DataError(f"how many of what? One of {', '.join(_MEASURED)}; not {what!r}")
    if not difference > 0.0:
        raise DataError(f"a difference to see is a number above 0; it is {difference}")

    def enough(count: int) -> bool:
        return replace(components, **{what: count}).power(difference, alpha) >= power

    low, high = 2, 4
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return ceil(low)


def _square(value: float) -> float:
    return 0.0 if isnan(value) else value * value
