r"""Mutual information of an ensemble: how much its members contradict each other about an image, in nats.

.. math:: I(x) = H\Bigl(\frac1T\sum_t p_t\Bigr) - \frac1T\sum_t H(p_t)
          = \frac1T\sum_t \mathrm{KL}\Bigl(p_t \,\Big\|\, \frac1T\sum_u p_u\Bigr)

0 where all members say the same, however undecided they are; :math:`\ln T` where each is certain of a class of its own.
"Raising the Bar on the Evaluation of Out-of-Distribution Detection" (Mukhoti et al., arXiv 2209.11960) takes it as the
distance in meaning between an image and the training classes.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores

# The window of mutual information that a generated near-OOD image must fall into.
#
# Below it an image is one of the training classes after all, above it a heap of noise that no class resembles.
# "Raising
# the Bar" (arXiv 2209.11960) takes for the lower end the smallest value that minimises the overlap of validation and
# generated images, read here as the error of telling them apart by a threshold t,
#
# .. math:: \mathrm{low} = \arg\min_t \bigl[ P(I_\text{val} \ge t) + P(I_\text{near} < t) \bigr],
#
# and for the upper end ``low + 0.4``. Its windows: [.1, .5] for MNIST, [.2, .6] for CIFAR-10, [.4, .8] for CIFAR-100
# and ImageNet. Where most images in the window still show the class that they were made from, :func:`raised_window`
# moves
# it up.


@dataclass(frozen=True)
class Window:
    """A closed interval of mutual information, in nats: both ends belong to it."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.low <= self.high:
            raise DataError(f"a window of mutual information starts at 0 or more and ends later: {self}")

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"

    def keeps(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Whether each image falls into the window."""
        information = np.asarray(values, dtype=np.float64)
        return (self.low <= information) & (information <= self.high)


def overlap(val_mi: ArrayLike, near_mi: ArrayLike, thresholds: ArrayLike) -> FloatArray:
    """Share of validation images at or above each threshold, plus share of generated images below it.

    0 where the threshold separates the two, 1 where it says nothing.
    """
    val = np.sort(check_scores(val_mi, "the mutual information of validation images"))
    near = np.sort(check_scores(near_mi, "the mutual information of generated images"))
    wrong_val = val.size - val.searchsorted(thresholds, side="left")
    return np.asarray(wrong_val / val.size + near.searchsorted(thresholds, side="left") / near.size)


def overlap_window(val_mi: ArrayLike, near_mi: ArrayLike, width: float = 0.4, step: float = 0.05) -> Window:
    """The window whose lower end has the smallest :func:`overlap`, the smallest such end where several have.

    Parameters
    ----------
    val_mi : mutual information of ID validation images, in nats.
    near_mi : of generated images, before any filter.
    width : of the window.
    step : the lower end is a multiple of it; coarse, so that a window is stated in round numbers.
    """
    if not (width > 0.0 and step > 0.0):
        raise DataError(f"width and step of a window are above 0; they are {width:g} and {step:g}")
    exact = _exact(step)
    most = max(np.max(val_mi, initial=0.0), np.max(near_mi, initial=0.0))
    ends = [float(exact * k) for k in range(int(most / step) + 2)]
    error = overlap(val_mi, near_mi, ends)
    # counts divided by sizes: what is equal in truth differs by rounding
    best = int(np.argmax(error <= error.min() + 1e-12))
    if best == 0:
        raise DataError(
            "generated images are detected no better than validation images by any lower end: the ensemble does not "
            "disagree more about them; generate with a larger weight of the semantic loss"
        )
    return Window(ends[best], float(exact * best + _exact(width)))


def raised_window(
    window: Window, near_mi: ArrayLike, class_seen: ArrayLike, enough: int, most: float = 0.45, step: float = 0.05
) -> Window:
    """The window moved up, in steps, until at most a share ``most`` of the images in it show their class.

    Members may contradict each other a little about an image whose class all of them still name first: it is an odd
    image of that class and no outlier. Where no window with ``enough`` images has so few, it is the one with the
    fewest; where none has enough images, it stays where it is.

    Parameters
    ----------
    near_mi : mutual information of generated images, before any filter.
    class_seen : whether the members together see in each image the class that it was made from.
    enough : images that must be left in the window.
    most : a twentieth less than half: networks that images were not trained against see the class a little more often.
    """
    information, seen = np.asarray(near_mi, dtype=np.float64), np.asarray(class_seen, dtype=np.bool_)
    exact, low, high = _exact(step), _exact(window.low), _exact(window.high)
    best, fewest = window, np.inf
    for number in range(int((np.max(information, initial=0.0) - window.low) / step) + 2):
        raised = Window(float(low + number * exact), float(high + number * exact))
        inside = raised.keeps(information)
        if inside.sum() >= enough and (share := seen[inside].mean()) < fewest:
            best, fewest = raised, share
        if fewest <= most:
            break
    return best


def _exact(value: float) -> Fraction:
    """A round number as it was meant: 3 * 0.05 is not 0.15 in floating point, and an image may lie just on an end."""
    return Fraction(value).limit_denominator(1_000_000)


_ROUNDING = 1e-3
"""How far a distribution may be from a sum of 1: what half precision does to a thousand classes, and no more."""


def mutual_information(probabilities: ArrayLike) -> FloatArray:
    r"""The mutual information of each image, ``[N]``, between 0 and :func:`most_information`.

    Computed as a mean of divergences with terms :math:`q\,[(1 + r) \ln(1 + r) - r]`, :math:`r = (p - q) / q`, none of
    which is below 0: a difference of two entropies would lose the digits of a small value. :math:`0 \ln 0` is 0, so
    one-hot members are exact.

    Parameters
    ----------
    probabilities : ``[T, N, C]``: members, images, classes; each member's distribution over the classes.
    """
    members = _check(probabilities)
    mean = members.mean(axis=0)
    ratio = np.divide(members - mean, mean, out=np.zeros_like(members), where=mean > 0.0)
    divergences = np.sum(mean * (xlog1py(1.0 + ratio, ratio) - ratio), axis=2)
    return np.asarray(divergences.mean(axis=0))


def most_information(members: int, classes: int) -> float:
    r"""The largest mutual information that so many members can have about so many classes: :math:`\ln\min(T, C)`.

    It is reached where the members are certain and divide evenly over as many classes as there are members (or all
    classes). One dissenter among 6 certain members makes .4506, two who agree .6365, three .6931.
    """
    if members < 1 or classes < 1:
        raise DataError(f"an ensemble has at least one member and one class; it has {members} and {classes}")
    return log(min(members, classes))


def _check(probabilities: ArrayLike) -> FloatArray:
    array = np.asarray(probabilities, dtype=np.float64)
    if array.ndim != 3 or 0 in (array.shape[0], array.shape[2]):
        raise DataError(f"the probabilities of an ensemble are [members, images, classes]; the shape is {array.shape}")
    # written so that NaN fails too
    if not ((array >= 0.0).all() and (np.abs(array.sum(axis=2) - 1.0) <= _ROUNDING).all()):
        raise DataError("the probabilities of each member must be 0 or more and sum to 1; take the softmax of logits")
    return array
