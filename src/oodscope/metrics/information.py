r"""Mutual information of an ensemble: how much its members contradict each other about an image, in nats.

.. math:: I(x) = H\Bigl(\frac1T\sum_t p_t\Bigr) - \frac1T\sum_t H(p_t)
          = \frac1T\sum_t \mathrm{KL}\Bigl(p_t \,\Big\|\, \frac1T\sum_u p_u\Bigr)

0 where all members say the same, however undecided they are; :math:`\ln T` where each is certain of a class of its own.
"Raising the Bar on the Evaluation of Out-of-Distribution Detection" (Mukhoti et al., arXiv 2209.11960) takes it as the
distance in meaning between an image and the training classes.
"""

from math import log

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray

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
