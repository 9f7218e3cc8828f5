"""Bootstrap: the replicates of every metric, and the intervals that come from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
        """Percentile interval of one metric on one OOD set."""
        return percentile_interval(self.replicates(metric, [ood_set]), level)

    def mean_interval(self, metric: str, ood_sets: Sequence[str], level: float = 0.95) -> Interval:
        """Percentile interval of the unweighted mean of one metric over several OOD sets (near, far)."""
        return percentile_interval(self.replicates(metric, ood_sets), level)

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


def percentile_interval(replicates: FloatArray, level: float = 0.95) -> Interval:
    """The middle ``level`` of the replicates of a stratified bootstrap."""
    check_level(level)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Interval(float(low), float(high), level, f"bootstrap-stratified-{replicates.size}")
