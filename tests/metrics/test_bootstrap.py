"""The counting bootstrap against one that resamples the scores and measures them anew."""

from itertools import islice

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.metrics import METRICS, Ranking, auroc_interval, bootstrap, mean_auroc_interval, resamples


def naive_metrics(id_scores, ood_scores):
    """Every metric by scikit-learn."""
    values = np.concatenate([id_scores, ood_scores])
    is_ood = np.r_[np.zeros(len(id_scores)), np.ones(len(ood_scores))]
    metrics = {
        "auroc": roc_auc_score(is_ood, values),
        "aupr_out": average_precision_score(is_ood, values),
        "aupr_in": average_precision_score(1 - is_ood, -values),
    }
    for name, labels, sign, prevalence in [
        ("aupr_out_prevalence50", is_ood, 1, 0.5),
        ("aupr_out_prevalence10", is_ood, 1, 0.1),
        ("aupr_in_prevalence50", 1 - is_ood, -1, 0.5),
    ]:
        weights = np.where(labels == 1, prevalence / labels.sum(), (1 - prevalence) / (1 - labels).sum())
        metrics[name] = average_precision_score(labels, sign * values, sample_weight=weights)
    for positive, labels, sign in [("ood", is_ood, 1), ("id", 1 - is_ood, -1)]:
        fpr, tpr, _ = roc_curve(labels, sign * values, drop_intermediate=False)
        metrics[f"fpr95_{positive}_positive"] = fpr[np.argmax(tpr >= 0.95)]
        metrics[f"tpr5_{positive}_positive"] = tpr[fpr <= 0.05].max()
    return metrics


def made_scores(kind, n_id, sizes):
    rng = np.random.default_rng(4)
    shape = {"continuous": lambda x: x, "tied": np.round, "constant": lambda x: 0 * x}[kind]
    id_scores = shape(rng.normal(size=n_id))
    return id_scores, {f"set {k}": shape(rng.normal(1.5, 1, size=n)) for k, n in enumerate(sizes)}


@pytest.mark.parametrize(
    ("kind", "n_id", "sizes"),
    [
        ("continuous", 40, [60]),
        ("tied", 60, [40, 60]),
        ("tied", 300, [20]),
        ("continuous", 3, [2]),
        ("constant", 4, [4]),
        ("continuous", 1, [1]),
    ],
)
@pytest.mark.parametrize("block", [1, 700, 2**18])
def test_replicates_are_those_of_naive_resampling(kind, n_id, sizes, block, monkeypatch):
    monkeypatch.setattr("oodscope.metrics.resampling._BLOCK", block)
    id_scores, ood_sets = made_scores(kind, n_id, sizes)
    replicates = 12
    values = bootstrap(id_scores, ood_sets, seed=9, replicates=replicates).values
    for name, ood in ood_sets.items():
        id_rows = islice(resamples(n_id, seed=9), replicates)
        ood_rows = islice(resamples(ood.size, seed=9, ood_set=name), replicates)
        for r, (id_draw, ood_draw) in enumerate(zip(id_rows, ood_rows, strict=True)):
            for metric, expected in naive_metrics(id_scores[id_draw], ood[ood_draw]).items():
                tolerance = 0 if metric.startswith(("fpr95", "tpr5")) else 1e-12
                assert values[metric][name][r] == pytest.approx(expected, abs=tolerance, rel=0), metric


def test_intervals_are_percentiles_of_the_replicates_and_means_are_joint():
    id_scores, ood_sets = made_scores("continuous", 80, [50, 70, 60])
    result = bootstrap(id_scores, ood_sets, seed=0, replicates=200)
    assert set(result.values) == set(METRICS)
    for metric in METRICS:
        columns = result.values[metric]
        one = result.interval(metric, "set 1")
        assert (one.low, one.high) == pytest.approx(tuple(np.percentile(columns["set 1"], [2.5, 97.5])))
        mean = result.mean_interval(metric, ["set 0", "set 2"], level=0.8)
        paired = (columns["set 0"] + columns["set 2"]) / 2
        assert (mean.low, mean.high) == pytest.approx(tuple(np.percentile(paired, [10, 90])))
        assert (mean.level, mean.method) == (0.8, "bootstrap-stratified-200")


def test_draws_depend_on_sizes_seed_and_name_alone():
    id_scores, ood_sets = made_scores("continuous", 80, [50, 50])
    full = bootstrap(id_scores, ood_sets, seed=0, replicates=50).values
    alone = bootstrap(id_scores, {"set 1": ood_sets["set 1"]}, seed=0, replicates=20).values
    same_order = bootstrap(np.exp(id_scores), {k: np.exp(v) for k, v in ood_sets.items()}, seed=0, replicates=50).values
    renamed = bootstrap(id_scores, {"other": ood_sets["set 1"]}, seed=0, replicates=50).values
    reseeded = bootstrap(id_scores, ood_sets, seed=1, replicates=50).values
    for metric in METRICS:
        column = full[metric]["set 1"]
        np.testing.assert_array_equal(alone[metric]["set 1"], column[:20])
        np.testing.assert_array_equal(same_order[metric]["set 1"], column)
        assert (renamed[metric]["other"] != column).any()
        assert (reseeded[metric]["set 1"] != column).any()


def test_sets_share_the_id_draw_and_nothing_else():
    id_scores, _ = made_scores("continuous", 400, [1])
    ood = np.random.default_rng(5).normal(1, 1, size=400)
    aurocs = bootstrap(id_scores, {"a": ood, "b": ood}, seed=0, replicates=1000).values["auroc"]
    correlation = np.corrcoef(aurocs["a"], aurocs["b"])[0, 1]
    # Equal samples and shifts: the ID draw carries half of the variance.
    assert correlation == pytest.approx(0.5, abs=0.1)


def test_auroc_intervals_agree_with_delong():
    id_scores, ood_sets = made_scores("continuous", 600, [500, 400])
    result = bootstrap(id_scores, ood_sets, seed=0)
    rankings = [Ranking(id_scores, ood) for ood in ood_sets.values()]
    pairs = [
        (result.interval("auroc", "set 0"), auroc_interval(rankings[0])),
        (result.mean_interval("auroc", list(ood_sets)), mean_auroc_interval(rankings)),
    ]
    for ours, delong in pairs:
        width = delong.high - delong.low
        assert (ours.low, ours.high) == pytest.approx((delong.low, delong.high), abs=0.12 * width)


@pytest.mark.parametrize(("id_scores", "ood"), [([0.0], [1.0]), ([1.0], [0.0]), ([2.0] * 5, [2.0] * 3)])
def test_degenerate_samples_have_degenerate_intervals(id_scores, ood):
    result = bootstrap(id_scores, {"only": ood}, seed=0, replicates=30)
    expected = naive_metrics(np.array(id_scores), np.array(ood))
    for metric in METRICS:
        interval = result.interval(metric, "only")
        assert (interval.low, interval.high) == pytest.approx((expected[metric], expected[metric]))


def test_misuse_is_named():
    result = bootstrap([0.0, 1.0], {"svhn": [0.5, 2.0]}, seed=0, replicates=5)
    with pytest.raises(UnknownNameError, match="Did you mean 'auroc'"):
        result.interval("auroc_", "svhn")
    with pytest.raises(UnknownNameError, match="OOD set 'shvn'"):
        result.mean_interval("auroc", ["shvn"])
    with pytest.raises(OodscopeError, match="needs at least one OOD set"):
        result.mean_interval("auroc", [])
    with pytest.raises(OodscopeError, match="it is 95"):
        result.interval("auroc", "svhn", level=95)
    with pytest.raises(OodscopeError, match="it has 0 and 1"):
        bootstrap([0.0], {"svhn": [1.0]}, seed=0, replicates=0)
    with pytest.raises(OodscopeError, match="it has 1000 and 0"):
        bootstrap([0.0], {}, seed=0)
    with pytest.raises(OodscopeError, match="svhn scores: 1 of 2 are NaN or infinite; the first is row 1"):
        bootstrap([0.0], {"svhn": [1.0, np.nan]}, seed=0)
