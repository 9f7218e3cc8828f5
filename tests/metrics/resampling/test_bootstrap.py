"""The counting bootstrap against one that resamples the scores and measures them anew."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import norm, skew
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.metrics.catalog import RANKING
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.metrics.resampling.draws import resamples
from oodscope.metrics.resampling.resampling import bootstrap, bootstrap_each


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


@pytest.mark.slow
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
@pytest.mark.parametrize(
    ("piece", "table", "device"), [(2**16, 2**21, "cpu"), (64, 2**21, "cpu"), (1, 1, "cpu"), (2**16, 2**21, "cpu:0")]
)
def test_replicates_are_those_of_naive_resampling(kind, n_id, sizes, piece, table, device, monkeypatch):
    monkeypatch.setattr("oodscope.metrics.resampling.counting._PIECE", piece)
    monkeypatch.setattr("oodscope.metrics.resampling.counting._TABLE", table)
    id_scores, ood_sets = made_scores(kind, n_id, sizes)
    replicates = 21
    found = bootstrap_each({"": (id_scores, ood_sets)}, seed=9, replicates=replicates, device=device)
    values = found[""].values
    for name, ood in ood_sets.items():
        id_rows = islice(resamples(n_id, seed=9), replicates)
        ood_rows = islice(resamples(ood.size, seed=9, ood_set=name), replicates)
        for r, (id_draw, ood_draw) in enumerate(zip(id_rows, ood_rows, strict=True)):
            for metric, expected in naive_metrics(id_scores[id_draw], ood[ood_draw]).items():
                tolerance = 0 if metric.startswith(("fpr95", "tpr5")) else 1e-12
                assert values[metric][name][r] == pytest.approx(expected, abs=tolerance, rel=0), metric


def literal_bca(replicates, point, level):
    """From Efron's equations, with SciPy's own normal and skewness."""
    z = norm.ppf(1 - (1 - level) / 2)
    z0 = norm.ppf(np.mean((replicates < point) + 0.5 * (replicates == point)))
    a = skew(replicates) / 6
    shares = [norm.cdf(z0 + (z0 + side) / (1 - a * (z0 + side))) for side in (-z, z)]
    return tuple(np.percentile(replicates, [100 * share for share in shares]))


def test_intervals_are_bca_and_means_are_joint():
    id_scores, ood_sets = made_scores("continuous", 80, [50, 70, 60])
    result = bootstrap(id_scores, ood_sets, seed=0, replicates=200)
    assert set(result.values) == {each.name for each in RANKING}
    for metric in [each.name for each in RANKING]:
        columns = result.values[metric]
        one = result.interval(metric, "set 1")
        assert (one.low, one.high) == pytest.approx(literal_bca(columns["set 1"], result.points[metric]["set 1"], 0.95))
        mean = result.mean_interval(metric, ["set 0", "set 2"], level=0.8)
        paired = (columns["set 0"] + columns["set 2"]) / 2
        point = (result.points[metric]["set 0"] + result.points[metric]["set 2"]) / 2
        assert (mean.low, mean.high) == pytest.approx(literal_bca(paired, point, 0.8))
        assert (mean.level, mean.method) == (0.8, "bootstrap-bca-200")


def test_detectors_share_the_draws_and_do_not_disturb_each_other():
    id_scores, ood_sets = made_scores("tied", 60, [40, 50])
    samples = {f"d{k}": (np.roll(id_scores, k), {n: np.roll(v, k) for n, v in ood_sets.items()}) for k in range(5)}
    together = bootstrap_each(samples, seed=3, replicates=30)
    assert list(together) == list(samples)
    for name, sample in samples.items():
        alone = bootstrap(*sample, seed=3, replicates=30)
        for metric in [each.name for each in RANKING]:
            for ood_set in ood_sets:
                np.testing.assert_array_equal(together[name].values[metric][ood_set], alone.values[metric][ood_set])
    some = bootstrap_each(samples, seed=3, replicates=30, metrics=["tpr5_id_positive"])["d1"]
    assert list(some.values) == list(some.points) == ["tpr5_id_positive"]
    np.testing.assert_array_equal(
        some.values["tpr5_id_positive"]["set 1"], together["d1"].values["tpr5_id_positive"]["set 1"]
    )


def test_percentiles_are_those_of_the_replicates():
    replicates = np.random.default_rng(0).normal(size=500)
    interval = percentile_interval(replicates, 0.9)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.percentile(replicates, [5, 95])))


def test_draws_depend_on_sizes_seed_and_name_alone():
    id_scores, ood_sets = made_scores("continuous", 80, [50, 50])
    full = bootstrap(id_scores, ood_sets, seed=0, replicates=50).values
    alone = bootstrap(id_scores, {"set 1": ood_sets["set 1"]}, seed=0, replicates=20).values
    same_order = bootstrap(np.exp(id_scores), {k: np.exp(v) for k, v in ood_sets.items()}, seed=0, replicates=50).values
    renamed = bootstrap(id_scores, {"other": ood_sets["set 1"]}, seed=0, replicates=50).values
    reseeded = bootstrap(id_scores, ood_sets, seed=1, replicates=50).values
    for metric in [each.name for each in RANKING]:
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
    for metric in [each.name for each in RANKING]:
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
    with pytest.raises(OodscopeError, match="it has -1 and 1"):
        bootstrap([0.0], {"svhn": [1.0]}, seed=0, replicates=-1)
    with pytest.raises(OodscopeError, match="b: detectors share their draws, so all must score the same images"):
        bootstrap_each({"a": ([0.0, 1.0], {"s": [1.0]}), "b": ([0.0], {"s": [1.0]})}, seed=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'auroc'"):
        bootstrap_each({"a": ([0.0], {"s": [1.0]})}, seed=0, metrics=["aurocs"])
    with pytest.raises(OodscopeError, match="it has 1000 and 0"):
        bootstrap([0.0], {}, seed=0)
    with pytest.raises(OodscopeError, match="svhn scores: 1 of 2 are NaN or infinite; the first is row 1"):
        bootstrap([0.0], {"svhn": [1.0, np.nan]}, seed=0)
