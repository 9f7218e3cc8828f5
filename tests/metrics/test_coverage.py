"""Intervals hold the truth about as often as they say; ``benchmarks/interval_coverage.py`` is the long version."""

import numpy as np
import pytest
from scipy.stats import norm

from oodscope.metrics.ranking.delong import auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.metrics.resampling.resampling import bootstrap_each


@pytest.mark.slow
@pytest.mark.parametrize(("auroc", "n"), [(0.6, 50), (0.9, 200), (0.95, 50)])
def test_both_intervals_of_an_auroc_and_that_of_fpr95(auroc, n):
    cases = 400
    rng = np.random.default_rng(n)
    shift = norm.ppf(auroc) * np.sqrt(2)
    samples = {str(k): (rng.normal(size=n), {"o": rng.normal(shift, 1, size=n)}) for k in range(cases)}
    truth = {"auroc": auroc, "fpr95_id_positive": norm.cdf(norm.ppf(0.95) - shift)}
    draws = bootstrap_each(samples, seed=0, replicates=400, metrics=list(truth))
    held = dict.fromkeys(["delong", "auroc", "fpr95_id_positive", "plain"], 0)
    for name, (id_scores, ood) in samples.items():
        intervals = {metric: draws[name].interval(metric, "o") for metric in truth}
        intervals["delong"] = auroc_interval(Ranking(id_scores, ood["o"]))
        intervals["plain"] = percentile_interval(draws[name].replicates("auroc", ["o"]))
        for kind, interval in intervals.items():
            held[kind] += interval.low - 1e-12 <= truth.get(kind, auroc) <= interval.high + 1e-12
    assert 0.92 <= held["delong"] / cases <= 0.98
    assert 0.92 <= held["auroc"] / cases <= 0.98
    assert 0.91 <= held["fpr95_id_positive"] / cases <= 0.99
    if (auroc, n) == (0.95, 50):
        assert held["plain"] < held["auroc"]
