r"""Hardness of near images at equal ID-ness, and whether they are OOD class by class.

"The class is seen in at most half of the images" and "harder than real outliers" are met together by a mixture of ID
images and easy outliers. So hardness is compared where judges do not see the source class, and as a curve over the
probability p that they give it; and no class may be seen more than twice as often as judges see it in real outliers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, wilson_interval
from oodscope.metrics.ranking.delong import auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.scores import FloatArray, check_scores

BINS = ((0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.8), (0.8, 1.0))
"""Of p(source class), for the curve."""

FACTOR = 2.0
"""How many times as often as in real outliers a class may be seen in images that were made from it."""

LEAST = 20
"""Images below which a bin or a class says nothing."""


@dataclass(frozen=True)
class Hardness:
    """AUROC on some images of a set, with its interval."""

    value: float
    interval: Interval
    n: int


def hardness(id_scores: FloatArray, scores: FloatArray, unseen: NDArray[np.bool_]) -> Hardness | None:
    """AUROC on the images in which the judges' majority does not see the source class; None where these are too few."""
    kept = check_scores(scores, "scores")[unseen]
    if len(kept) < LEAST:
        return None
    ranking = Ranking(id_scores, kept)
    return Hardness(ranking.auroc, auroc_interval(ranking), len(kept))


def hardness_by_idness(
    id_scores: FloatArray, scores: FloatArray, source: FloatArray
) -> dict[tuple[float, float], Hardness | None]:
    """AUROC by the probability that judges give the class that an image was made from.

    Parameters
    ----------
    source : p(source class) of each image; for real outliers, the largest probability of any class.
    """
    curve = {}
    for low, high in BINS:
        inside = (source >= low) & ((source < high) | (high == BINS[-1][1]))
        curve[low, high] = hardness(id_scores, scores, inside)
    return curve


@dataclass(frozen=True)
class ClassCheck:
    """One class of a generated set.

    Parameters
    ----------
    label : its number.
    n, seen : images made from it, and those in which the judges see it.
    bound : the largest share allowed: twice that of real outliers that judges take for this class, by the upper end
        of its 95 % interval.
    """

    label: int
    n: int
    seen: int
    bound: float

    @property
    def share(self) -> float:
        return self.seen / self.n

    @property
    def passes(self) -> bool | None:
        """None where there are too few images to say."""
        return None if self.n < LEAST else self.share <= self.bound


def class_checks(
    source: NDArray[np.int64], judged: NDArray[np.int64], control: NDArray[np.int64], classes: int
) -> list[ClassCheck]:
    """Every class of a generated set beside the judges' opinion of real outliers.

    Parameters
    ----------
    source, judged : the class that each image was made from, and the one that the judges see in it.
    control : the class that the judges see in each image of a real OOD set: CIFAR-100 for CIFAR-10.
    """
    if not len(control):
        raise DataError("a check by class needs real outliers to compare with")
    checks = []
    for label in range(classes):
        own, taken = source == label, int((control == label).sum())
        if own.any():
            bound = FACTOR * wilson_interval(taken, len(control)).high
            checks.append(ClassCheck(label, int(own.sum()), int((own & (judged == label)).sum()), min(1.0, bound)))
    return checks


def class_criterion(source: NDArray[np.int64], seen: NDArray[np.bool_], bounds: FloatArray) -> NDArray[np.bool_]:
    """Which images stay, so that each class is seen in at most its share.

    Images whose class is not seen all stay; of those in which it is seen, the first so many that the share of the class
    stays within its bound. The caller says which classes have few images left.

    Parameters
    ----------
    seen : whether the ensemble sees the class that the image was made from.
    bounds : the largest share for each class, below 1.
    """
    kept = ~seen
    for label in np.unique(source):
        own = source == label
        unseen, bound = int((own & ~seen).sum()), min(float(bounds[label]), 0.999)
        allowed = int(bound / (1 - bound) * unseen)
        rows = np.flatnonzero(own & seen)[:allowed]
        kept[rows] = True
    return np.asarray(kept)
