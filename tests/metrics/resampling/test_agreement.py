"""The present bootstrap against that of version 0.1: replicates and intervals to 1e-12, ties and weights included."""

import numpy as np
import pytest

from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.metrics.metric import columns_of
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.resampling.resampling import bootstrap_each, bootstrap_values
from tests.metrics.resampling.reference import reference_bootstrap

WALKED = [name for name, metric in METRICS.items() if metric.sample is Walk]


def scores_of(kind, n_id, sizes):
    rng = np.random.default_rng(7)
    known, sets = rng.normal(size=n_id), {f"s{k}": rng.normal(1, 1, size=n) for k, n in enumerate(sizes)}
    made = {
        "continuous": lambda x: x,
        "tied": lambda x: np.round(x, 1),
        "few values": np.round,
        "saturated": lambda x: np.minimum(x, 0.5),  # as softmax scores that reach 1 in float32
        "separated": lambda x: x,
        "constant": np.zeros_like,
    }[kind]
    apart = 20.0 if kind == "separated" else 0.0
    return made(known), {name: made(each) + apart for name, each in sets.items()}


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
@pytest.mark.parametrize("kind", ["continuous", "tied", "few values", "saturated", "separated", "constant"])
def test_every_metric_of_a_walk_agrees_with_version_0_1(kind, device):
    id_scores, ood_sets = scores_of(kind, 150, [90, 240])
    slow = reference_bootstrap(id_scores, ood_sets, seed=2, replicates=40, metrics=WALKED)
    fast = bootstrap_each({"": (id_scores, ood_sets)}, seed=2, replicates=40, metrics=WALKED, device=device)[""]
    for metric in WALKED:
        assert fast.points[metric] == slow.points[metric]
        for name in ood_sets:
            np.testing.assert_allclose(fast.values[metric][name], slow.values[metric][name], rtol=0, atol=1e-12)
            one, other = (each.interval(metric, name) for each in (fast, slow))
            assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-12, rel=0), metric
        one, other = (each.mean_interval(metric, list(ood_sets)) for each in (fast, slow))
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-12, rel=0), metric


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
@pytest.mark.parametrize("kind", ["continuous", "tied", "saturated"])
def test_sets_of_more_images_than_16_bits_count_agree(kind, device):
    id_scores, ood_sets = scores_of(kind, 9_000, [70_000])
    ranked = [metric.name for metric in RANKING]
    slow = reference_bootstrap(id_scores, ood_sets, seed=0, replicates=8, metrics=ranked)
    fast = bootstrap_each({"": (id_scores, ood_sets)}, seed=0, replicates=8, device=device)[""]
    for metric in ranked:
        np.testing.assert_allclose(fast.values[metric]["s0"], slow.values[metric]["s0"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "few values"])
def test_counts_as_weights_give_the_same_replicates(kind):
    id_scores, ood_sets = scores_of(kind, 60, [40, 50])
    columns = {"": {name: columns_of(id_scores, each) for name, each in ood_sets.items()}}
    weighed = bootstrap_values(columns, RANKING, seed=4, replicates=15)[""]
    counted = bootstrap_each({"": (id_scores, ood_sets)}, seed=4, replicates=15)[""]
    for metric in [each.name for each in RANKING]:
        for name in ood_sets:
            np.testing.assert_allclose(
                counted.values[metric][name], weighed.values[metric][name], rtol=0, atol=1e-12, err_msg=metric
            )
