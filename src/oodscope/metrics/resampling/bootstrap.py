"""Bootstrap: the replicates of every metric, and the intervals that come from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.scores import FloatArray


@dataclass(frozen=True)
class Bootstrap:
    """The replicates of each metric on each OOD set.

    Replicate r used one ID draw for all sets, and the same draws for any detector bootstrapped with the same
    seed, set names and sizes: means over sets and differences of detectors are taken replicate by replicate.

    Parameters
    ----------
    values : metric name, then set name, then one value per replicate.
    points : metric name, then set name, then the value of the sample itself.
    """

    values: Mapping[str, Mapping[str, FloatArray]]
    points: Mapping[str, Mapping[str, float]]

    def interval(self, metric: str, ood_set: str, level: float = 0.95) -> Interval:
        """Interval of one metric on one OOD set; see :func:`bca_interval`."""
        return self.mean_interval(metric, [ood_set], level)

    def mean_interval(self, metric: str, ood_sets: Sequence[str], level: float = 0.95) -> Interval:
        """Interval of the unweighted mean of one metric over several OOD sets (near, far)."""
        return self.mean_intervals([(metric, ood_sets)], level)[0]

    def mean_intervals(self, means: Sequence[tuple[str, Sequence[str]]], level: float = 0.95) -> list[Interval]:
        """Intervals of several means, each of a metric over some OOD sets, in one pass."""
        replicates = np.stack([self.replicates(metric, ood_sets) for metric, ood_sets in means])
        return bca_intervals(replicates, np.array([self.point(metric, ood_sets) for metric, ood_sets in means]), level)

    def replicates(self, metric: str, ood_sets: Sequence[str]) -> FloatArray:
        """The replicates of a metric, averaged over these sets."""
        self._check(metric, ood_sets)
        return np.asarray(np.mean([self.values[metric][ood_set] for ood_set in ood_sets], axis=0))

    def point(self, metric: str, ood_sets: Sequence[str]) -> float:
        """The metric of the sample itself, averaged over these sets."""
        self._check(metric, ood_sets)
        return float(np.mean([self.points[metric][ood_set] for ood_set in ood_sets]))

    def _check(self, metric: str, ood_sets: Sequence[str]) -> None:
        if metric not in self.values:
            raise UnknownNameError("metric", metric, self.values)
        if not ood_sets:
            raise DataError(f"a mean of {metric} needs at least one OOD set")
        for ood_set in ood_sets:
            if ood_set not in self.values[metric]:
                raise UnknownNameError("OOD set", ood_set, self.values[metric])


def bca_intervals(replicates: FloatArray, points: FloatArray, level: float = 0.95) -> list[Interval]:
    r"""Efron's bias-corrected and accelerated intervals (JASA 1987) of a stratified bootstrap.

    Its ends are the replicates at shares :math:`\Phi(z_0 + u / (1 - a u))`, :math:`u = z_0 \pm z`, in place of the
    plain tails. :math:`z_0` is how far the replicates lie to one side of the point, a tie counting half; a, a
    sixth of their skewness, says how the noise grows with the value. Near 1, where AUROC and AUPR are lopsided,
    the plain percentiles cover the truth too seldom and these do not (``docs/results/interval-coverage.md``).

    Parameters
    ----------
    replicates : ``[value, replicate]``.
    points : of the sample itself, ``[value]``.
    """
    check_level(level)
    count = replicates.shape[1]
    share = (np.sum(replicates < points[:, None], axis=1) + 0.5 * np.sum(replicates == points[:, None], axis=1)) / count
    z0 = ndtri(np.clip(share, 0.5 / count, 1.0 - 0.5 / count))
    z = -float(ndtri((1.0 - level) / 2.0))
    centred, spread = replicates - replicates.mean(axis=1, keepdims=True), replicates.std(axis=1)
    third = np.mean(centred**3, axis=1)
    skewness = np.divide(third, spread**3, out=np.zeros_like(third), where=spread > 0.0)
    # beyond this the shares would turn round
    limit = 0.9 / (np.abs(z0) + z)
    a = np.clip(skewness / 6.0, -limit, limit)[:, None]
    u = z0[:, None] + np.array([-z, z])
    ends = _quantiles(replicates, ndtr(z0[:, None] + u / (1.0 - a * u)))
    return [Interval(low, high, level, f"bootstrap-bca-{count}") for low, high in ends.tolist()]


def bca_interval(replicates: FloatArray, point: float, level: float = 0.95) -> Interval:
    """The interval of one value; see :func:`bca_intervals`."""
    return bca_intervals(replicates[None], np.array([point]), level)[0]


def _quantiles(values: FloatArray, shares: FloatArray) -> FloatArray:
    """Of each row its own quantiles ``[row, share]``; ``np.quantile``, to the bit, takes the same for all rows."""
    ordered = np.sort(values, axis=1)
    place = shares * (values.shape[1] - 1)
    below = np.clip(np.floor(place).astype(np.int64), 0, values.shape[1] - 1)
    above = np.minimum(below + 1, values.shape[1] - 1)
    low, high = (np.take_along_axis(ordered, where, axis=1) for where in (below, above))
    part, gap = place - below, high - low
    # from the nearer of the two, so that neither end is missed by rounding
    return np.asarray(np.where(part >= 0.5, high - gap * (1.0 - part), low + gap * part))


def percentile_interval(replicates: FloatArray, level: float = 0.95) -> Interval:
    """The middle ``level`` of the replicates of a stratified bootstrap."""
    check_level(level)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Interval(float(low), float(high), level, f"bootstrap-stratified-{replicates.size}")
