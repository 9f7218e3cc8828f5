r"""Thresholds that keep false alarms below a target, for any finite number of calibration images.

What is promised concerns in-distribution images that are drawn like the calibration images: how many of *them* are
rejected. Nothing is promised about how many outliers are caught, nor about images whose conditions have shifted.

An image is rejected iff its score is **greater than** the threshold :math:`\gamma = s_{(k)}`, the k-th smallest of
n calibration scores. Two guarantees choose k:

**Conformal** (Vovk, Gammerman & Shafer 2005), over the draw of calibration images and new image together:

.. math:: P(s_{n+1} > s_{(k)}) \le \frac{n+1-k}{n+1} \le \alpha, \qquad n+1-k = \lfloor\alpha(n+1)\rfloor .

Of n + 1 exchangeable scores, at most n + 1 - k have k others strictly below them, however many are tied; so the first
bound needs no continuity, and without ties it is an equality: the mean false-alarm rate is above
:math:`\alpha - 1/(n+1)`. For one calibration set the rate is random, with the law :math:`\mathrm{Beta}(n+1-k, k)`:
about half of the sets give a rate above its mean.

**PAC** (Wilks 1941): with probability :math:`1-\delta` over the calibration images, the false-alarm rate is at most
:math:`\alpha`. Let q be the smallest value with :math:`P(S > q) \le \alpha`. The rate exceeds :math:`\alpha` only if
:math:`s_{(k)} < q`, that is, if at most n - k calibration scores reach q; each reaches it with probability
:math:`\alpha` or more, so

.. math:: P(\text{rate} > \alpha) \le P(\mathrm{Binomial}(n, \alpha) \le n-k) \le \delta .

Ties only lower the left side.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, log
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.interval import check_level
from oodscope.metrics.ranking.walk import most_count
from oodscope.metrics.scores import FloatArray, check_scores

Kind = Literal["conformal", "pac"]


@dataclass(frozen=True)
class Guarantee:
    """What a threshold promises about in-distribution images like the calibration images, and about no others.

    Parameters
    ----------
    kind : ``"conformal"``: the chance of a false alarm is at most ``target``, over calibration and new image.
        ``"pac"``: with probability ``confidence`` over the calibration images, the rate of false alarms is.
    target : the largest tolerated rate of false alarms, such as 0.05.
    confidence : of a PAC guarantee; None for a conformal one.
    n : calibration images.
    """

    kind: Kind
    target: float
    confidence: float | None
    n: int

    def __str__(self) -> str:
        rate = f"false alarms on images like the {self.n:,} calibration images: at most {_percent(self.target)}"
        how = "on average" if self.confidence is None else f"with confidence {_percent(self.confidence)}"
        return f"{rate} {how} ({self.kind}); nothing is promised about outliers or shifted images"


@dataclass(frozen=True, eq=False)
class Calibration:
    """Sorted calibration scores, and the threshold that a guarantee draws through them.

    Parameters
    ----------
    scores : of in-distribution images that nothing was fitted to, ascending, larger = more OOD.
    threshold : a score above it is rejected; the threshold itself is accepted.
    """

    scores: FloatArray
    threshold: float
    guarantee: Guarantee

    def accepts(self, scores: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each score is in distribution, as far as the threshold says."""
        return np.asarray(scores, dtype=np.float64) <= self.threshold

    def p_values(self, scores: ArrayLike) -> FloatArray:
        r"""Conformal p-values: :math:`p = (1 + \#\{i : s_i \ge s\}) / (n+1)`.

        The chance that an in-distribution image gets a p-value of u or less is at most u. The conformal threshold
        rejects exactly where :math:`p \le \alpha`.
        """
        n = len(self.scores)
        below = self.scores.searchsorted(np.asarray(scores, dtype=np.float64), side="left")
        return (1.0 + n - below) / (n + 1)


def calibrate(scores: ArrayLike, target: float, kind: Kind = "conformal", confidence: float = 0.95) -> Calibration:
    """The smallest threshold among the calibration scores that keeps the guarantee.

    Parameters
    ----------
    scores : of in-distribution images that neither the network nor the detector was fitted to.
    target : tolerated rate of false alarms, in (0, 1).
    kind, confidence : see ``Guarantee``; a conformal guarantee takes no confidence.
    """
    ordered = np.sort(check_scores(scores, "calibration scores"))
    n = len(ordered)
    above = check_enough(n, target, kind, confidence)
    guarantee = Guarantee(kind, target, confidence if kind == "pac" else None, n)
    return Calibration(ordered, float(ordered[n - 1 - above]), guarantee)


def check_enough(n: int, target: float, kind: Kind = "conformal", confidence: float = 0.95) -> int:
    """How many of n calibration scores may lie above the threshold; too few images are refused, in words."""
    _check(target, kind, confidence)
    above = most_above(n, target, kind, confidence)
    if above is None:
        raise DataError(
            f"a target of {target:g} needs at least {least_images(target, 'conformal', confidence)} calibration images "
            f"(PAC at {_percent(confidence)}: {least_images(target, 'pac', confidence)}); there are {n}"
        )
    return above


@cache
def most_above(n: int, target: float, kind: Kind = "conformal", confidence: float = 0.95) -> int | None:
    """How many of n calibration scores may lie above the threshold; None if n is too few for the guarantee."""
    if kind == "conformal":
        alarms = int(most_count(target, n + 1))
        return alarms - 1 if alarms > 0 else None
    delta = 1.0 - confidence
    # ppf is the first count whose probability reaches delta; only if it hits delta exactly is it allowed
    first = int(binom.ppf(delta, n, target))
    above = first if binom.cdf(first, n, target) <= delta else first - 1
    return above if above >= 0 else None


def least_images(target: float, kind: Kind = "conformal", confidence: float = 0.95) -> int:
    """The fewest calibration images with which a target can be met."""
    guess = 1 / target - 1 if kind == "conformal" else log(1 - confidence) / log(1 - target)
    n = max(1, ceil(guess) - 1)
    while most_above(n, target, kind, confidence) is None:
        n += 1
    return n


def _check(target: float, kind: str, confidence: float) -> None:
    if kind not in get_args(Kind):
        raise UnknownNameError("guarantee", kind, get_args(Kind), f"Known: {', '.join(get_args(Kind))}")
    if not 0.0 < target < 1.0:
        raise DataError(f"a target rate of false alarms lies between 0 and 1, such as 0.05; it is {target}")
    check_level(confidence)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
