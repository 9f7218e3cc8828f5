"""Risk, coverage and the areas under them."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import assume

from oodscope.base.errors import DataError
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.rejection.selective import SELECTIVE, Selection, draw_counts
from oodscope.metrics.resampling.draws import resamples
from tests.metrics.rejection import slow_rejection as slow
from tests.metrics.rejection.test_rejection import given, samples

SLOW = {
    "aurc": slow.aurc,
    "e_aurc": slow.e_aurc,
    "augrc": slow.augrc,
    "der_oracle": slow.oracle_der,
    "coverage_at_risk5": lambda scores, correct: slow.coverage_at_risk(scores, correct, 0.05),
    "auroc_failure": slow.auroc_failure,
}


def test_every_metric_has_a_slow_reference():
    assert set(SLOW) == set(SELECTIVE)


@pytest.mark.parametrize("metric", SLOW)
@given(sample=samples())
def test_against_one_image_at_a_time(metric, sample):
    scores, correct = sample
    assume(metric != "auroc_failure" or (correct.any() and not correct.all()))
    expected = SLOW[metric](scores.tolist(), correct.tolist())
    assert Selection(scores, correct).points()[metric] == pytest.approx(expected, abs=1e-12)


@given(samples())
def test_the_curve(sample):
    scores, correct = sample
    coverage, risk = Selection(scores, correct).curve()
    expected = slow.risk_coverage(scores.tolist(), correct.tolist())
    assert coverage.tolist() == [point[0] for point in expected]
    assert risk.tolist() == [point[1] for point in expected]


@given(samples(least=2))
def test_the_augrc_identity_holds_under_ties(sample):
    scores, correct = sample
    assume(correct.any() and not correct.all())
    a = correct.mean()
    auroc = Ranking(scores[correct], scores[~correct]).auroc
    found = Selection(scores, correct).points()
    assert found["augrc"] == pytest.approx((1 - auroc) * a * (1 - a) + (1 - a) ** 2 / 2, abs=1e-12)
    assert found["auroc_failure"] == pytest.approx(auroc, abs=1e-12)


@given(samples())
def test_bounds_and_monotone_transforms(sample):
    scores, correct = sample
    found = Selection(scores, correct).points()
    assert found["e_aurc"] >= -1e-12
    assert 0 <= found["augrc"] <= 0.5
    assert found["der_oracle"] <= min(correct.mean(), 1 - correct.mean()) + 1e-12
    assert Selection(np.exp(2 * scores), correct).points() == pytest.approx(found, nan_ok=True)


def test_no_failure_and_no_success():
    perfect, hopeless = Selection([1.0, 2.0], [True, True]).points(), Selection([1.0, 2.0], [False, False]).points()
    assert (perfect["aurc"], perfect["augrc"], perfect["coverage_at_risk5"]) == (0, 0, 1)
    assert (hopeless["aurc"], hopeless["augrc"], hopeless["coverage_at_risk5"]) == (1, 0.5, 0)
    assert hopeless["e_aurc"] == 0
    assert np.isnan(perfect["auroc_failure"])
    assert np.isnan(hopeless["auroc_failure"])


def test_one_image():
    found = Selection([0.5], [False]).points()
    assert (found["aurc"], found["augrc"], found["der_oracle"]) == (1, 0.5, 0)


@pytest.mark.parametrize("decimals", [8, 1])
def test_replicates_are_the_metrics_of_the_resampled_images(decimals):
    rng = np.random.default_rng(0)
    scores, correct = rng.normal(size=70).round(decimals), rng.random(70) < 0.6
    counts = draw_counts(resamples(70, seed=2), 70, 25)
    found = Selection(scores, correct).replicates(counts)
    for replicate, rows in enumerate(islice(resamples(70, seed=2), 25)):
        expected = Selection(scores[rows], correct[rows]).points()
        assert {name: values[replicate] for name, values in found.items()} == pytest.approx(expected, abs=1e-12)


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(1)
    selection = Selection(rng.normal(size=50), rng.random(50) < 0.6)
    counts = draw_counts(resamples(50, seed=0), 50, 30)
    whole = selection.replicates(counts)
    monkeypatch.setattr("oodscope.metrics.rejection.selective._BLOCK", 350)
    assert all((whole[name] == values).all() for name, values in selection.replicates(counts).items())


def test_a_risk_beyond_one_is_refused():
    with pytest.raises(DataError, match="between 0 and 1"):
        Selection([0.0], [True]).acceptance.coverage_at_risk(5)
