"""DER, its identities, and the thresholds behind it."""

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as given_many
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.rejection.rejection import Rejection, der_over_prevalence
from oodscope.metrics.rejection.selective import Selection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.draws import resamples
from tests.examples import examples
from tests.metrics.rejection import slow_rejection as slow

TOY_T = np.array([0.95, 0.9, 0.8, 0.6, 0.55, 0.3, 0.2])
TOY_CORRECT = np.array([1, 1, 0, 1, 0, 1, 0], dtype=bool)


def given(*args, **kwargs):
    """Forty examples: enough to find what one mutation breaks, few enough for every commit."""
    return lambda test: examples(40)(given_many(*args, **kwargs)(test))


levels = st.integers(-4, 4).map(lambda level: level / 4)
"""Few distinct scores, so that ties are the rule."""


@st.composite
def samples(draw, least=1):
    n = draw(st.integers(least, 30))
    scores = draw(st.lists(levels, min_size=n, max_size=n))
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(scores, dtype=float), np.array(correct, dtype=bool)


class TestDecisions:
    def test_the_toy_of_the_paper(self):
        found = Rejection(-TOY_T, TOY_CORRECT).at(-0.58)
        assert (found.rejected_correct, found.kept_wrong) == (1, 1)
        assert found.der == 2 / 7
        assert found.accuracy == 4 / 7

    @given(samples(), st.one_of(levels, st.just(np.inf), st.just(-np.inf)))
    def test_counts_against_one_image_at_a_time(self, sample, gamma):
        scores, correct = sample
        found = Rejection(scores, correct).at(gamma)
        counts = (found.kept_correct, found.rejected_correct, found.kept_wrong, found.rejected_wrong)
        assert counts == slow.decisions(scores, correct, gamma)
        assert found.cost(2.0, 5.0) == pytest.approx((2 * counts[1] + 5 * counts[2]) / len(scores))

    @given(samples(), levels)
    def test_der_is_false_rejection_and_false_acceptance_weighted(self, sample, gamma):
        scores, correct = sample
        assume(correct.any() and not correct.all())
        found = Rejection(scores, correct).at(gamma)
        assert found.der == pytest.approx(found.accuracy * found.frr + (1 - found.accuracy) * found.far)

    @given(samples())
    def test_both_ends(self, sample):
        scores, correct = sample
        rejection = Rejection(scores, correct)
        assert rejection.accept_all().der == pytest.approx(1 - correct.mean())
        assert rejection.reject_all().der == pytest.approx(correct.mean())

    @given(samples(), levels)
    def test_of_a_foreign_set_it_is_the_share_kept(self, sample, gamma):
        scores, correct = sample
        foreign = Rejection(scores, np.zeros_like(correct)).at(gamma)
        assert foreign.der == foreign.far == np.mean(scores < gamma)
        assert np.isnan(foreign.frr)

    @given(samples(), levels)
    def test_only_the_order_counts(self, sample, gamma):
        scores, correct = sample
        assert Rejection(scores, correct).at(gamma) == Rejection(np.exp(3 * scores), correct).at(np.exp(3 * gamma))

    @given(samples())
    def test_the_curve_holds_every_threshold(self, sample):
        scores, correct = sample
        thresholds, found = Rejection(scores, correct).curve()
        assert thresholds[-1] == np.inf
        assert found.der.tolist() == [slow.der(scores, correct, gamma) for gamma in thresholds]
        assert found.der.min() == slow.oracle_der(scores, correct)
        assert float(Selection(scores, correct).acceptance.oracle_der()) == pytest.approx(found.der.min())

    @given(st.integers(1, 20), st.integers(1, 20))
    def test_a_perfect_order_reaches_zero(self, good, bad):
        correct = np.arange(good + bad) < good
        assert Selection(np.arange(good + bad), correct).acceptance.oracle_der() == 0

    def test_a_bootstrap_replicate_draws_the_images_anew(self):
        """The counts of resampled decisions against those of resampled images."""
        rng = np.random.default_rng(0)
        scores, correct = rng.normal(size=60), rng.random(60) < 0.7
        rejection = Rejection(scores, correct)
        fast = rejection.at(np.zeros(4000)).resampled(rng)
        assert (fast.n == 60).all()
        slowly = [
            Rejection(scores[rows], correct[rows]).at(0.0).der for rows, _ in zip(resamples(60, seed=1), range(4000))
        ]
        assert fast.der.mean() == pytest.approx(np.mean(slowly), abs=0.004)
        assert fast.der.std() == pytest.approx(np.std(slowly), rel=0.06)


class TestPrevalence:
    def test_between_the_two_sets(self):
        known, foreign = Rejection(-TOY_T, TOY_CORRECT).at(-0.58), Rejection([0.1, 0.9], [False, False]).at(0.5)
        assert der_over_prevalence(known, foreign, [0, 1]).tolist() == [2 / 7, 0.5]
        assert der_over_prevalence(known, foreign, 0.25) == pytest.approx(0.75 * 2 / 7 + 0.25 * 0.5)

    def test_of_a_pooled_stream_it_is_the_der_of_the_stream(self):
        rng = np.random.default_rng(1)
        known, right, foreign = rng.normal(size=30), rng.random(30) < 0.8, rng.normal(1, 1, size=10)
        pooled = Rejection(np.append(known, foreign), np.append(right, np.zeros(10, dtype=bool))).at(0.4)
        parts = Rejection(known, right).at(0.4), Rejection(foreign, np.zeros(10, dtype=bool)).at(0.4)
        assert der_over_prevalence(*parts, 0.25) == pytest.approx(pooled.der)

    def test_a_share_beyond_one_is_refused(self):
        known = Rejection(-TOY_T, TOY_CORRECT).at(0.0)
        with pytest.raises(DataError, match="prevalence"):
            der_over_prevalence(known, known, 1.5)


class TestThreshold:
    @pytest.mark.parametrize(("keep", "gamma"), [(0.95, 0.0595), (0.99, 0.0199)])
    def test_the_fixture(self, keep, gamma):
        found = ThresholdSample(-np.arange(1, 101) / 100).threshold(keep)
        assert found.value == pytest.approx(-gamma, abs=1e-12)
        assert found.kept == keep
        assert found.tied == 0

    @given(st.lists(st.one_of(levels, st.floats(-1e3, 1e3)), min_size=1, max_size=60), st.sampled_from([95, 99, 50]))
    def test_decisions_equal_those_of_the_papers_form(self, scores, keep):
        """gamma' = the lower quantile of T = -s, rejected iff T <= gamma'."""
        found = ThresholdSample(scores).threshold(keep / 100)
        lower = slow.quantile([-score for score in scores], (100 - keep, 100))
        assert found.value == pytest.approx(-lower)
        assert found.value == pytest.approx(np.quantile(scores, keep / 100), abs=1e-9)
        rejected = [-score <= lower for score in scores]
        # where the interpolation rounds onto the next score, that score is to be kept
        limit = sorted(-score for score in scores)[(len(scores) - 1) * (100 - keep) // 100]
        assert [score >= found.value for score in scores] == [
            r and (-score <= limit) for r, score in zip(rejected, scores)
        ]
        assert found.kept == np.mean([score < found.value for score in scores])

    @pytest.mark.parametrize("n", [21, 201, 2001])
    @pytest.mark.parametrize(("keep", "one_in"), [(0.95, 20), (0.9, 10), (0.8, 5)])
    def test_a_quantile_that_falls_on_an_image_rejects_exactly_up_to_it(self, n, keep, one_in):
        """(n - 1) * (1 - 0.9) is whole, but a little less in floating point."""
        found = ThresholdSample(np.arange(n)).threshold(keep)
        assert found.value == n - 1 - (n - 1) // one_in
        assert found.tied == 1 / n

    def test_tie_mass_is_reported(self):
        found = ThresholdSample([0.0] * 30 + [1.0] * 70).threshold(0.95)
        assert (found.value, found.kept, found.tied) == (1.0, 0.3, 0.7)

    def test_one_image_and_equal_scores_reject_all(self):
        assert ThresholdSample([0.3]).threshold(0.95).kept == 0
        assert ThresholdSample([0.3] * 8).threshold(0.99).kept == 0

    @given(st.lists(levels, min_size=2, max_size=50), st.lists(levels, min_size=1, max_size=50))
    def test_a_looser_threshold_keeps_more_of_a_foreign_set(self, known, foreign):
        sample = ThresholdSample(known)
        kept = [np.mean(np.array(foreign) < sample.threshold(keep).value) for keep in (0.95, 0.99)]
        assert kept[1] >= kept[0]

    @pytest.mark.parametrize(("n", "keep"), [(1, 0.95), (2, 0.95), (20, 0.9), (301, 0.95)])
    def test_replicates_have_the_law_of_resampling(self, n, keep):
        scores = np.random.default_rng(n).normal(size=n)
        fast = ThresholdSample(scores).replicates(keep, seed=0, count=4000)
        slowly = [ThresholdSample(scores[r]).threshold(keep).value for r, _ in zip(resamples(n, seed=5), range(2000))]
        for share in (0.1, 0.5, 0.9):
            # how often the slow replicates lie below a quantile of the fast ones
            cut = np.quantile(fast, share)
            assert np.mean(np.array(slowly) <= cut + 1e-12) >= share - 0.03
            assert np.mean(np.array(slowly) < cut - 1e-12) <= share + 0.03
        assert fast.std() == pytest.approx(np.std(slowly), rel=0.1, abs=1e-12)

    def test_replicates_depend_on_the_seed_alone(self):
        sample = ThresholdSample(np.arange(50.0))
        assert (sample.replicates(0.95, seed=3, count=9) == sample.replicates(0.95, seed=3, count=9)).all()
        assert (sample.replicates(0.95, seed=3, count=9) != sample.replicates(0.95, seed=4, count=9)).any()


class TestRefused:
    def test_nan_scores_name_the_sample(self):
        with pytest.raises(DataError, match=r"knn, val_correct: 1 of 2 are NaN or infinite; the first is row 1"):
            ThresholdSample([0.0, np.nan], "knn, val_correct")
        with pytest.raises(DataError, match="NaN"):
            Rejection([0.0, np.nan], [True, False])

    @pytest.mark.parametrize("keep", [0.0, 1.0, 95])
    def test_a_share_that_is_a_percentage(self, keep):
        with pytest.raises(DataError, match="such as 0.95"):
            ThresholdSample([0.0]).threshold(keep)

    @pytest.mark.parametrize("correct", [[True], [1, 0], [[True, False]]])
    def test_truth_values_that_do_not_fit(self, correct):
        with pytest.raises(DataError, match="2 truth values"):
            Rejection([0.0, 1.0], correct)


class TestWilson:
    def test_the_closed_form(self):
        z, n, p = 1.959963984540054, 40, 5 / 40
        centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        found = wilson_interval(5, 40)
        assert (found.low, found.high) == pytest.approx(
            ((centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n))
        )
        assert found.method == "wilson"

    @pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 4), (5, 4), (0, 0)])
    def test_no_share(self, successes, trials):
        with pytest.raises(DataError, match="a rate needs"):
            wilson_interval(successes, trials)
