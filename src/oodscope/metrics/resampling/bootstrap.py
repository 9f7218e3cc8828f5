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
        return bca_interval(self.replicates(metric, ood_sets), self.point(metric, ood_sets), level)

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


def bca_interval(replicates: FloatArray, point: float, level: float = 0.95) -> Interval:
    r"""Efron's bias-corrected and accelerated interval (JASA 1987) of a stratified bootstrap.

    Its ends are the replicates at shares :math:`\Phi(z_0 + u / (1 - a u))`, :math:`u = z_0 \pm z`, in place of the
    plain tails. :math:`z_0` is how far the replicates lie to one side of the point, a tie counting half; a, a
    sixth of their skewness, says how the noise grows with the value. Near 1, where AUROC and AUPR are lopsided,
    the plain percentiles cover the truth too seldom and these do not (``docs/results/interval-coverage.md``).
    """
    check_level(level)
    share = (np.sum(replicates < point) + 0.5 * np.sum(replicates == point)) / replicates.size
    ends = 0.5 / replicates.size
    z0 = float(ndtri(np.clip(share, ends, 1.0 - ends)))
    z = -float(ndtri((1.0 - level) / 2.0))
    centred, spread = replicates - replicates.mean(), float(replicates.std())
    skewness = float(np.mean(centred**3)) / spread**3 if spread > 0.0 else 0.0
    # beyond this the shares would turn round
    limit = 0.9 / (abs(z0) + z)
    a = float(np.clip(skewness / 6.0, -limit, limit))
    u = z0 + np.array([-z, z])
    low, high = np.quantile(replicates, ndtr(z0 + u / (1.0 - a * u)))
    return Interval(float(low), float(high), level, f"bootstrap-bca-{replicates.size}")


def percentile_interval(replicates: FloatArray, level: float = 0.95) -> Interval:
    """The middle ``level`` of the replicates of a stratified bootstrap."""
    check_level(level)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Interval(float(low), float(high), level, f"bootstrap-stratified-{replicates.size}")
