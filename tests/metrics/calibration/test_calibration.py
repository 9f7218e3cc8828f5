"""Calibration errors against torchmetrics, scikit-learn and slow references; intervals against the truth."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from oodscope.base.errors import DataError
from oodscope.metrics.calibration.calibration import (
    adaptive_calibration_error,
    equal_mass_reliability,
    expected_calibration_error,
    inverted_interval,
    reliability,
)
from oodscope.metrics.resampling.bootstrap import percentile_interval
from tests.examples import examples

SIXTIETHS = st.integers(0, 60).map(lambda k: k / 60)
"""Confidences, many of them exactly at edges of 15 bins."""


@st.composite
def judged(draw, values=SIXTIETHS):
    """Confidences, and whether the classifier was right."""
    confidence = draw(st.lists(values, min_size=1, max_size=40))
    correct = draw(st.lists(st.booleans(), min_size=len(confidence), max_size=len(confidence)))
    return np.array(confidence), np.array(correct)


def slow_error(confidence, correct, bins):
    """One bin and one image at a time, each in ((b - 1) / bins, b / bins] of whole numbers."""
    total = 0.0
    for b in range(1, bins + 1):
        inside = [i for i, c in enumerate(confidence) if (b - 1) / bins < c <= b / bins or (b == 1 and c == 0)]
        if inside:
            gap = np.mean([correct[i] for i in inside]) - np.mean([confidence[i] for i in inside])
            total += len(inside) / len(confidence) * abs(gap)
    return total


class TestError:
    @examples(60)
    @given(judged(), st.sampled_from([1, 2, 10, 15]))
    def test_against_bin_by_bin(self, given_, bins):
        confidence, correct = given_
        error = expected_calibration_error(confidence, correct, bins)
        assert error == pytest.approx(slow_error(confidence, correct, bins), abs=1e-12)
        assert 0 <= error <= 1

    @examples(30)
    @given(judged(st.floats(0.001, 0.999).filter(lambda c: abs(c * 15 - round(c * 15)) > 1e-6)), st.just(15))
    def test_is_torchmetrics_away_from_the_edges(self, given_, bins):
        """At an edge torchmetrics puts an image into the bin above, and 1.0 into a bin of its own."""
        confidence, correct = given_
        theirs = binary_calibration_error(torch.tensor(confidence), torch.tensor(correct).long(), n_bins=bins)
        assert expected_calibration_error(confidence, correct, bins) == pytest.approx(float(theirs), abs=1e-6)

    def test_is_torchmetrics_of_many_classes(self):
        rng = np.random.default_rng(0)
        probabilities, labels = rng.dirichlet(np.full(10, 0.3), size=3000), rng.integers(10, size=3000)
        theirs = multiclass_calibration_error(torch.tensor(probabilities), torch.tensor(labels), num_classes=10)
        ours = expected_calibration_error(probabilities.max(axis=1), probabilities.argmax(axis=1) == labels)
        assert ours == pytest.approx(float(theirs), abs=1e-6)

    @examples(30)
    @given(judged(), st.sampled_from([1, 4, 10]))
    def test_the_plot_is_scikit_learns(self, given_, bins):
        confidence, correct = given_
        found = reliability(confidence, correct, bins)
        accuracy, mean = calibration_curve(correct, confidence, n_bins=bins, pos_label=True)
        filled = found.count > 0
        np.testing.assert_allclose(found.accuracy[filled], accuracy, atol=1e-12)
        np.testing.assert_allclose(found.confidence[filled], mean, atol=1e-12)
        assert np.isnan(found.accuracy[~filled]).all()
        assert np.isnan(found.confidence[~filled]).all()
        assert found.n == confidence.size == found.count.sum()

    def test_bins_that_are_as_right_as_they_say(self):
        confidence = np.repeat([0.25, 0.5, 0.75], 4)
        correct = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0], dtype=bool)
        assert expected_calibration_error(confidence, correct) == 0
        assert adaptive_calibration_error(confidence, correct, 3) == 0

    @pytest.mark.parametrize("right", [0, 3, 10])
    def test_certain_of_everything(self, right):
        correct = np.arange(10) < right
        for error in (expected_calibration_error, adaptive_calibration_error):
            assert error(np.ones(10), correct) == pytest.approx(1 - right / 10)

    def test_gaps_say_in_which_direction(self):
        found = reliability([0.9, 0.9, 0.3, 0.3], [True, False, True, False], 2)
        np.testing.assert_allclose(found.gaps, [0.5 * (0.5 - 0.3), 0.5 * (0.5 - 0.9)])
        assert found.error == pytest.approx(0.3)

    def test_an_edge_is_the_decimal_that_people_write(self):
        """0.2 is the upper end of the third of 15 bins, also where 3 * (1 / 15) is not 0.2 in floating point."""
        for bins, k in ((15, 3), (15, 9), (10, 3), (10, 7), (49, 1)):
            assert reliability([k / bins], [True], bins).count.tolist() == [float(b == k - 1) for b in range(bins)]


class TestEqualMass:
    @examples(30)
    @given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 2**32))
    def test_bins_are_equal_up_to_one_image(self, n, bins, seed):
        confidence = np.random.default_rng(seed).permutation(np.linspace(0.01, 0.99, n))
        count = equal_mass_reliability(confidence, np.zeros(n, dtype=bool), bins).count
        assert count.max() - count.min() <= 1
        assert count.sum() == n

    @examples(30)
    @given(judged(), st.sampled_from([1, 3, 15]), st.randoms())
    def test_ties_do_not_depend_on_the_order_of_images(self, given_, bins, random):
        confidence, correct = given_
        order = random.sample(range(confidence.size), confidence.size)
        error = adaptive_calibration_error(confidence, correct, bins)
        assert adaptive_calibration_error(confidence[order], correct[order], bins) == pytest.approx(error, abs=1e-12)
        assert abs(correct.mean() - confidence.mean()) - 1e-12 <= error <= 1

    def test_by_hand(self):
        """Two halves: (0.1, 0.2) with one right, (0.8, 1.0) with none."""
        found = equal_mass_reliability([0.8, 0.1, 1.0, 0.2], [False, True, False, False], 2)
        assert found.edges.tolist() == [0, 0.2, 1]
        assert found.error == pytest.approx((1 - 0.3) / 4 + 1.8 / 4)


def world(n, seed, kind):
    """Confidences like a network's, and truth: calibrated, wrong above 0.9 only, or wrong everywhere."""
    rng = np.random.default_rng(seed)
    confidence = 1 - 0.9 * rng.beta(0.6, 3, size=n)
    chance = {"calibrated": confidence, "top": confidence - 0.1 * (confidence > 0.9), "all": confidence**2.5}[kind]
    return confidence, chance, rng.random(n) < chance


class TestInterval:
    def test_replicates_have_the_moments_of_resampled_images(self):
        confidence, _, correct = world(400, 0, "all")
        found = reliability(confidence, correct, 5)
        residual = (correct - confidence)[:, None] * (np.ceil(confidence * 5)[:, None] == np.arange(1, 6))
        drawn = found.replicates(seed=0, count=40_000)
        np.testing.assert_allclose(drawn.mean(axis=0), residual.mean(axis=0), atol=5e-4)
        exact = np.cov(residual, rowvar=False, bias=True) / 400
        np.testing.assert_allclose(np.cov(drawn, rowvar=False), exact, atol=0.03 * exact.max())

    def test_confidences_within_a_cell_vary_too(self):
        """One bin, all images right: what varies is the mean confidence alone."""
        confidence = np.linspace(0.5, 0.99, 200)
        found = reliability(confidence, np.ones(200, dtype=bool), 1)
        spread = found.replicates(seed=0, count=20_000).std()
        assert spread == pytest.approx(confidence.std() / np.sqrt(200), rel=0.03)

    @pytest.mark.parametrize("kind", ["calibrated", "top", "all"])
    def test_covers_the_truth_where_the_middle_of_the_replicates_does_not(self, kind):
        confidence, chance, _ = world(400_000, 1, kind)
        bins = np.minimum(np.ceil(confidence * 15).astype(int) - 1, 14)
        truth = np.abs(np.bincount(bins, chance - confidence)).sum() / confidence.size
        hits = plain = 0
        for seed in range(60):
            confidence, _, correct = world(1000, seed + 2, kind)
            found = reliability(confidence, correct)
            interval = found.interval(seed=seed, replicates=300)
            assert interval.low <= found.error <= interval.high
            hits += interval.low <= truth <= interval.high
            middle = percentile_interval(np.abs(found.replicates(seed=seed, count=300)).sum(axis=1))
            plain += middle.low <= truth <= middle.high
        assert hits >= 53
        if kind == "calibrated":
            assert plain == 0

    def test_shrinks_with_the_root_of_the_images(self):
        widths = []
        for n in (1000, 16_000):
            confidence, _, correct = world(n, 3, "all")
            interval = reliability(confidence, correct).interval()
            widths.append(interval.high - interval.low)
        assert widths[0] / widths[1] == pytest.approx(4, rel=0.15)

    def test_the_level_counts_and_is_named(self):
        confidence, _, correct = world(1000, 4, "all")
        found = reliability(confidence, correct)
        wide, narrow = found.interval(0.99, replicates=500), found.interval(0.5, replicates=500)
        assert wide.low < narrow.low < narrow.high < wide.high
        assert (wide.level, wide.method) == (0.99, "bootstrap-inverted-500")
        assert found.interval(seed=1) == found.interval(seed=1) != found.interval(seed=2)

    def test_a_fit_too_good_to_be_true_is_not_certainty(self):
        interval = reliability(np.full(100, 0.5), np.arange(100) % 2 == 0).interval()
        assert interval.low == 0
        assert 0.03 < interval.high < 0.15

    @pytest.mark.parametrize("right", [True, False])
    def test_nothing_to_resample_is_a_point(self, right):
        found = reliability(np.full(50, 0.7), np.full(50, right))
        assert (found.interval().low, found.interval().high) == pytest.approx((found.error, found.error))

    def test_a_gap_counts_alike_on_either_side(self):
        """Skewed noise, and the second gap turned round together with its replicates."""
        gaps, turned = np.array([0.05, 0.03]), np.array([1.0, -1.0])
        replicates = gaps + 0.02 * (np.random.default_rng(0).exponential(size=(500, 2)) - 1)
        one, other = inverted_interval(gaps, replicates), inverted_interval(turned * gaps, turned * replicates)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)

    def test_a_gap_that_varies_by_rounding_alone_stays(self):
        """The second gap may be noise, the first is certain: what is too much for the noise is not taken from it."""
        noise = np.random.default_rng(0).normal(size=(500, 2)) * [1e-16, 0.005]
        gaps = np.array([0.5, 0.005])
        assert inverted_interval(gaps, gaps + noise).low == pytest.approx(0.5, abs=1e-12)

    def test_equal_mass_has_one_too(self):
        confidence, _, correct = world(2000, 5, "all")
        found = equal_mass_reliability(confidence, correct)
        interval = found.interval()
        assert 0 < interval.low < found.error < interval.high

    def test_twenty_sets_of_ten_thousand_images_take_seconds(self):
        sets = [world(10_000, seed, "all") for seed in range(20)]
        start = time.process_time()
        for confidence, _, correct in sets:
            reliability(confidence, correct).interval(replicates=1000)
        assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("confidence", "correct", "bins", "message"),
    [
        ([0.5], [True], 0, "at least one bin; there are 0"),
        ([97.0], [True], 15, r"reach from 97 to 97 \(logits\? percent\?\)"),
        ([-0.1, 0.5], [True, False], 15, "reach from -0.1 to 0.5"),
        ([0.5, np.nan], [True, False], 15, "confidences: 1 of 2 are NaN"),
        ([], [], 15, "confidences are empty"),
        ([0.5], [1], 15, "correct must hold 1 truth values"),
        ([0.5, 0.6], [True], 15, "correct must hold 2 truth values"),
    ],
)
def test_mistakes(confidence, correct, bins, message):
    for error in (expected_calibration_error, adaptive_calibration_error):
        with pytest.raises(DataError, match=message):
            error(confidence, np.array(correct), bins)


def test_rounding_above_1_is_1():
    assert reliability(np.array([1.0000001], dtype=np.float32), [True]).confidence[-1] == 1
