"""Running means, variance components and the bootstrap over groups of classes, against slow twins and simulations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import OodscopeError
from oodscope.metrics.crossval.class_groups import class_group_interval, class_group_intervals
from oodscope.metrics.crossval.convergence import running_mean
from oodscope.metrics.crossval.variance import VarianceShares, variance_components
from oodscope.runs.crossval.study import variance_shares
from tests.examples import examples


@examples(40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_running_mean_is_the_slow_one(values):
    found = running_mean(values)
    for n in range(1, len(values) + 1):
        part = np.array(values[:n])
        assert found.mean[n - 1] == pytest.approx(part.mean(), abs=1e-12)
        if n == 1:
            assert np.isnan(found.error[0])
        else:
            assert found.error[n - 1] == pytest.approx(part.std(ddof=1) / np.sqrt(n), abs=1e-7)


def test_series_are_kept_apart():
    values = np.random.default_rng(0).uniform(size=(9, 2, 3))
    found = running_mean(values)
    assert found.mean.shape == found.error.shape == (9, 2, 3)
    np.testing.assert_allclose(found.mean[4, 1, 2], values[:5, 1, 2].mean())


def test_when_a_mean_has_settled():
    # means 1, .5, .5, .5: within .1 of the last from the second repetition on
    values = np.array([[1.0, 0.3], [0.0, 0.3], [0.5, 0.3], [0.5, 0.3]])
    assert running_mean(values).settled_after(0.1).tolist() == [2, 1]
    # leaves once more at the third: 0, 0, 1/3, 1/4
    assert running_mean([0.0, 0.0, 1.0, 0.0]).settled_after(0.06).tolist() == 4


def crossed(rng, sigmas, shape=(4, 4, 3), luck="run"):
    """One crossed design; the luck of a seed is that of a run, of a network that draws of classes share, or its own."""
    a, b, ab, s = sigmas
    i, j, k = shape
    seed = rng.normal(size={"run": shape, "network": (i, 1, k), "seed": (1, 1, k)}[luck])
    values = (
        a * rng.normal(size=(i, 1, 1)) + b * rng.normal(size=(1, j, 1)) + ab * rng.normal(size=(i, j, 1)) + s * seed
    )
    return values + np.zeros(shape)


@pytest.mark.slow
@pytest.mark.parametrize("luck", ["run", "network", "seed"])
def test_known_variances_are_recovered(luck):
    sigmas = np.array([0.5, 2.0, 0.8, 1.2])
    rng = np.random.default_rng(7)
    index = [each.ravel() for each in np.indices((4, 4, 3))]
    found = []
    for _ in range(1200):
        values = crossed(rng, sigmas, luck=luck)
        one = variance_components(values.ravel(), *index)
        found.append([one.id_sample, one.ood_classes, one.interaction, one.training_seed])
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - sigmas**2) < 4 * error).all()
    assert (error < 0.15).all()


def test_components_of_an_unbalanced_design_are_the_slow_ones():
    rng = np.random.default_rng(1)
    i, j, s = (each.ravel() for each in np.indices((3, 3, 2)))
    kept = rng.permutation(18)[:14]
    i, j, s, y = i[kept], j[kept], s[kept], rng.normal(size=14)
    moments = {}
    for p in range(14):
        for q in range(p):
            if s[p] == s[q]:
                continue
            names = {(True, True): "seed", (True, False): "classes", (False, True): "split", (False, False): "both"}
            kind = names[bool(i[p] == i[q]), bool(j[p] == j[q])]
            moments.setdefault(kind, []).append((y[p] - y[q]) ** 2 / 2)
    m = {kind: np.mean(values) for kind, values in moments.items()}
    found = variance_components(y, i, j, s)
    assert found.training_seed == pytest.approx(m["seed"])
    assert found.id_sample == pytest.approx(m["both"] - m["classes"])
    assert found.ood_classes == pytest.approx(m["both"] - m["split"])
    total = found.id_sample + found.ood_classes + found.interaction + found.training_seed
    assert total == pytest.approx(m["both"]) and found.runs == 14
    frame = pd.DataFrame({"id_draw": i, "ood_draw": j, "training_seed": s, "value": y})
    assert variance_shares(frame) == found
    assert variance_shares(frame.assign(value=y + 5)).id_sample == pytest.approx(found.id_sample)


def test_shares_leave_out_negative_components():
    shares = VarianceShares(3.0, -1.0, 0.0, 1.0, 8).shares()
    assert shares == {"id_sample": 0.75, "ood_classes": 0.0, "interaction": 0.0, "training_seed": 0.25}
    assert set(VarianceShares(0.0, -1.0, 0.0, 0.0, 8).shares().values()) == {0.0}


def dealt(rng, classes, repetitions, groups):
    """Folds of cross-validations of one set of classes, each fold the mean of its group."""
    deals = [rng.permutation(classes).reshape(groups, -1).mean(axis=1) for _ in range(repetitions)]
    return 0.5 + 0.05 * np.array(deals)


def test_the_interval_over_classes_covers_other_classes_and_naive_resampling_does_not():
    rng = np.random.default_rng(3)
    hit = naive = 0
    for trial in range(300):
        folds = dealt(rng, rng.normal(size=30), 8, 5)
        found = class_group_interval(folds, seed=trial, count=400)
        hit += found.low <= 0.5 <= found.high
        drawn = rng.choice(folds.ravel(), size=(400, folds.size)).mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        naive += low <= 0.5 <= high
    assert 0.90 <= hit / 300 <= 0.98
    assert naive / 300 < 0.7


def test_the_variance_of_the_replicates_is_that_of_a_mean_of_groups():
    folds = np.random.default_rng(5).uniform(0.4, 0.6, size=(6, 5))
    low, high = class_group_intervals(folds[:, :, None], level=0.6827, count=60_000)[:, 0]
    expected = np.sqrt(folds.var(axis=1, ddof=1).mean() / 5)
    assert (high - low) / 2 == pytest.approx(expected, rel=0.06)
    assert (low + high) / 2 == pytest.approx(folds.mean(), abs=0.003)
    # repetitions that deal alike say no more than one
    once, often = class_group_interval(folds[:1], count=4000), class_group_interval(folds[[0] * 20], count=4000)
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.08)


def test_intervals_of_series_are_those_of_each_and_stay_in_range():
    folds = np.random.default_rng(2).uniform(0.9, 1.0, size=(4, 5, 3))
    together = class_group_intervals(folds)
    for series in range(3):
        alone = class_group_interval(folds[:, :, series])
        assert (alone.low, alone.high) == pytest.approx(tuple(together[:, series]), abs=1e-12)
    wide = class_group_interval([[0.0, 1.0], [1.0, 1.0]])
    assert 0 <= wide.low < wide.high == 1 and wide.method == "bootstrap-class-groups-2000"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: running_mean([]), "at least one repetition"),
        (lambda: class_group_interval([0.5, 0.6]), "2 folds or more"),
        (lambda: class_group_interval([[0.5], [0.6]]), "2 folds or more"),
        (lambda: variance_components([1, 2], [0, 0], [0, 0], [0]), "every run needs"),
        (
            lambda: variance_components([1, 2], [0, 0], [0, 0], [0, 1]),
            "no two runs of different seeds differ in OOD classes but",
        ),
        (
            lambda: variance_components([1, 2, 3], [0, 0, 0], [0, 0, 1], [0, 0, 0]),
            "no two runs of different seeds differ in nothing else",
        ),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(OodscopeError, match=message):
        call()
