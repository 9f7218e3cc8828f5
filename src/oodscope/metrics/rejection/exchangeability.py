r"""An alarm for a stream of images that is no longer like the calibration images, valid whenever one looks.

**Online conformal p-values** (Vovk, Gammerman & Shafer 2005). The p-value of the t-th image is its smoothed rank among
the calibration images *and all earlier images of the stream*,

.. math:: p_t = \frac{\#\{i : s_i > s_t\} + u_t\,(1 + \#\{i : s_i = s_t\})}{n + t},\qquad u_t \sim U(0, 1).

If calibration images and stream are exchangeable, the p-values are independent and uniform, exactly. P-values against
the calibration images alone are not independent, and an alarm on them goes off too often the longer it runs.

**The martingale** bets that p-values are small, with every stake at once (Vovk et al. 2003):

.. math:: M_t = \int_0^1 \prod_{i\le t} \varepsilon\, p_i^{\varepsilon-1}\,d\varepsilon
              = e^{L}\,\gamma(t+1, L)\,/\,L^{t+1},\qquad L = -\sum_{i\le t}\log p_i .

:math:`M_0 = 1`, and by Ville's inequality :math:`P(\exists t: M_t \ge 1/\alpha) \le \alpha`. So an alarm at
:math:`1/\alpha` is false with probability at most :math:`\alpha` over the whole stream, however long. It says "not
exchangeable": outliers, a shift of conditions, or an order in the stream; not which, and not "OOD". Images of the
stream enter the ranks, so a slow drift is learned, and a small share of outliers needs many images: :func:`alarm_power`
says how many.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaln, hyp1f1, ndtri

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores

_UNDERFLOWS = 1e-280


def log_mixture(images: ArrayLike, information: ArrayLike) -> FloatArray:
    r""":math:`\log M_t` of ``images`` p-values with ``information`` :math:`L = -\sum\log p`."""
    t, total = np.asarray(images, dtype=np.float64), np.asarray(information, dtype=np.float64)
    t, total = np.broadcast_arrays(t, total)
    lower = gammainc(t + 1.0, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.asarray(total + np.log(lower) + gammaln(t + 1.0) - (t + 1.0) * np.log(total))
    if (tiny := lower <= _UNDERFLOWS).any():
        # p-values so large that the integral underflows: the same by Kummer's function, which is near 1
        found = np.array(found)
        found[tiny] = np.log(hyp1f1(1.0, t[tiny] + 2.0, total[tiny])) - np.log(t[tiny] + 1.0)
    return found


class ExchangeabilityAlarm:
    """Watches a stream of scores, one at a time.

    Parameters
    ----------
    calibration : scores of ID images, larger = more OOD.
    alpha : chance of a false alarm over the whole stream.
    seed : of the random numbers that break ties.

    Attributes
    ----------
    images : seen so far.
    alarm : number of the image (from 1) at which the alarm went off; None while it has not. It stays.
    """

    def __init__(self, calibration: ArrayLike, alpha: float = 0.01, seed: int = 0) -> None:
        if not 0.0 < alpha < 1.0:
            raise DataError(f"the chance of a false alarm lies between 0 and 1, such as 0.01; it is {alpha}")
        self.alpha, self.seed = alpha, seed
        self._ranked: list[float] = np.sort(check_scores(calibration, "calibration scores")).tolist()
        self._calibration = len(self._ranked)
        self._information = 0.0
        self._largest = 0.0
        self.images = 0
        self.alarm: int | None = None

    @property
    def log_evidence(self) -> float:
        r""":math:`\log M_t` against exchangeability; 0 says nothing, :math:`\log 1/\alpha` raises the alarm."""
        return float(log_mixture(self.images, self._information)) if self.images else 0.0

    @property
    def largest_log_evidence(self) -> float:
        """The most that there ever was."""
        return self._largest

    def observe(self, score: float) -> float:
        """Take the next score of the stream in; its online p-value."""
        if not np.isfinite(score):
            raise DataError(f"score {self.images + 1} of the stream is {score}")
        first, last = bisect_left(self._ranked, score), bisect_right(self._ranked, score)
        above, equal = len(self._ranked) - last, last - first
        # a generator for each image: an alarm that is taken up again breaks ties as one that was never interrupted
        smoothing = 1.0 - np.random.default_rng([self.seed, self.images]).random()
        p_value = float((above + smoothing * (equal + 1)) / (len(self._ranked) + 1))
        insort(self._ranked, score)
        self.images += 1
        self._information -= float(np.log(p_value))
        evidence = self.log_evidence
        self._largest = max(self._largest, evidence)
        if self.alarm is None and evidence >= -np.log(self.alpha):
            self.alarm = self.images
        return p_value

    def observe_all(self, scores: Iterable[float]) -> FloatArray:
        """The online p-values of several scores, in their order."""
        return np.array([self.observe(float(score)) for score in scores])

    def __str__(self) -> str:
        if self.alarm is None:
            return f"no alarm in {self.images:,} images: nothing speaks against exchangeability at {self.alpha:g}"
        return (
            f"ALARM at image {self.alarm:,}: the stream is not exchangeable with the calibration images (chance of a "
            f"false alarm over the whole stream: at most {self.alpha:g}). It may hold outliers, other conditions, or "
            "an order; which, the alarm does not say"
        )


@dataclass(frozen=True)
class AlarmPower:
    """How soon an alarm goes off.

    Parameters
    ----------
    share : of outliers in the stream.
    caught : share of the simulated streams with an alarm within ``horizon`` images.
    median : images until the alarm in the median stream; None where fewer than half had one.
    """

    share: float
    caught: float
    median: int | None
    horizon: int

    def __str__(self) -> str:
        within = f"alarm within {self.horizon:,} images in {100 * self.caught:.0f} % of streams"
        return f"{100 * self.share:g} % outliers: {within}" + (f", median {self.median:,}" if self.median else "")


def alarm_power(
    calibration: ArrayLike,
    *,
    alpha: float = 0.01,
    auroc: float = 0.9,
    shares: Sequence[float] = (0.5, 0.1, 0.05),
    horizon: int = 1000,
    streams: int = 50,
    outliers: ArrayLike | None = None,
    seed: int = 0,
) -> list[AlarmPower]:
    """Simulated power of the alarm: what silence means.

    Parameters
    ----------
    calibration : scores of ID images; the ID part of the simulated streams is drawn from their ranks.
    auroc : of the assumed detector, where ``outliers`` are not known: both sides normal with equal spread.
    outliers : scores of real outliers, in place of the assumption.
    """
    known = check_scores(calibration, "calibration scores")
    rng = np.random.default_rng(seed)
    shift = 0.0 if outliers is not None else float(np.sqrt(2.0) * ndtri(auroc))
    pool = None if outliers is None else check_scores(outliers, "outlier scores")
    found = []
    for share in shares:
        alarms = []
        for _ in range(streams):
            foreign = rng.random(horizon) < share
            if pool is None:
                start, stream = rng.normal(size=len(known)), rng.normal(size=horizon) + shift * foreign
            else:
                # ID images of the stream are set aside from the calibration images
                order = rng.permutation(known)
                start, rest = order[: len(order) // 2], order[len(order) // 2 :]
                stream = np.where(foreign, rng.choice(pool, horizon), rng.choice(rest, horizon))
            alarms.append(first_alarm(start, stream, alpha, rng))
        times = np.array(alarms, dtype=np.float64)
        median = float(np.median(times))
        caught = float(np.isfinite(times).mean())
        found.append(AlarmPower(share, caught, int(median) if np.isfinite(median) else None, horizon))
    return found


def first_alarm(calibration: FloatArray, stream: FloatArray, alpha: float, rng: np.random.Generator) -> float:
    """The image at which :class:`ExchangeabilityAlarm` would go off; infinite if never. All p-values at once."""
    ranked: list[float] = np.sort(calibration).tolist()
    above, equal = np.empty(len(stream)), np.empty(len(stream))
    for number, score in enumerate(stream.tolist()):
        first, last = bisect_left(ranked, score), bisect_right(ranked, score)
        above[number], equal[number] = len(ranked) - last, last - first
        ranked.insert(last, score)
    steps = np.arange(1, len(stream) + 1)
    p_values = (above + (1.0 - rng.random(len(stream))) * (equal + 1)) / (len(calibration) + steps)
    crossed = np.flatnonzero(log_mixture(steps, -np.log(p_values).cumsum()) >= -np.log(alpha))
    return float(steps[crossed[0]]) if len(crossed) else float("inf")
