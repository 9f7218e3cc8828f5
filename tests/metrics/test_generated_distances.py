"""Kernel and Fréchet distances, hardness at equal ID-ness, and controls that must fail."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from oodscope.metrics.generated.idness import class_checks, class_criterion, hardness, hardness_by_idness
from oodscope.metrics.generated.kid import frechet_at_infinity, kernel_distance


def slow_mmd(x, y):
    """From the paper, pair by pair."""
    k = lambda a, b: (a @ b / len(a) + 1) ** 3  # noqa: E731
    xx = np.mean([k(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j])
    yy = np.mean([k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    return xx + yy - 2 * np.mean([k(a, b) for a in x for b in y])


class TestKernelDistance:
    def test_it_is_the_mean_over_disjoint_blocks(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(24, 5)), rng.normal(0.5, 1, size=(30, 5))
        order = np.random.default_rng(0)
        a, b = x[order.permutation(24)[:24]].reshape(2, 12, 5), y[order.permutation(30)[:24]].reshape(2, 12, 5)
        expected = np.mean([slow_mmd(*pair) for pair in zip(a, b)])
        assert kernel_distance(x, y).value == pytest.approx(expected)

    def test_one_distribution_has_none_and_the_interval_covers(self):
        """Of 60 pairs of samples of one law, 0 lies within at least 90 %; the Fréchet distance is above 0 in all."""
        rng, covered = np.random.default_rng(1), 0
        for seed in range(60):
            x, y = rng.normal(size=(2, 800, 16))
            found = kernel_distance(x, y, seed=seed).interval
            covered += found.low <= 0 <= found.high
        assert covered >= 54
        assert frechet_distance(Gaussian.of(x), Gaussian.of(y)) > 0.05

    @pytest.mark.parametrize(("n", "widest"), [(98, 0.5), (400, 0.15)])
    def test_few_images_have_an_interval_that_says_something(self, n, widest):
        """Two blocks would cover too, by Student's t with one degree of freedom, and be 20 times as wide."""
        rng, covered, widths = np.random.default_rng(4), 0, []
        for seed in range(60):
            found = kernel_distance(rng.normal(size=(1000, 16)), rng.normal(size=(n, 16)), seed=seed).interval
            covered += found.low <= 0 <= found.high
            widths.append(found.high - found.low)
        assert covered >= 52
        assert np.mean(widths) < widest

    def test_a_shift_is_seen(self):
        rng = np.random.default_rng(2)
        found = kernel_distance(rng.normal(size=(800, 8)), rng.normal(0.3, 1, size=(800, 8)))
        assert found.interval.low > 0
        with pytest.raises(DataError, match="4 images or more"):
            kernel_distance(np.zeros((3, 2)), np.zeros((9, 2)))


def test_the_frechet_distance_at_infinity_has_less_bias():
    """Truth 1 (a shift of length 1): 400 images in 40 dimensions give far more, the extrapolation about 1."""
    rng = np.random.default_rng(3)
    shift = np.zeros(40)
    shift[0] = 1.0
    plain, ahead = [], []
    for seed in range(8):
        x, y = rng.normal(size=(400, 40)), rng.normal(size=(400, 40)) + shift
        plain.append(frechet_distance(Gaussian.of(x), Gaussian.of(y)))
        ahead.append(frechet_at_infinity(x, y, seed=seed))
    assert np.mean(plain) > 2.5
    assert abs(np.mean(ahead) - 1) < 0.4
    with pytest.raises(DataError, match="too few"):
        frechet_at_infinity(np.zeros((5, 40)), np.zeros((5, 40)))


class TestIdness:
    """A detector that separates real outliers well, ID images not at all."""

    rng = np.random.default_rng(4)
    ID = rng.normal(size=2000)
    REAL = rng.normal(1.5, 1, size=600)
    CONTROL = rng.integers(0, 10, 600)

    def test_half_id_images_look_hard_until_id_ness_is_equal(self):
        """ID test images and the half-ID mixture are harder than real outliers in plain AUROC; at equal ID-ness not."""
        mixture = np.concatenate([self.ID[:300], self.rng.normal(3.5, 1, size=300)])
        unseen = np.arange(600) >= 300
        everything = np.ones(600, dtype=bool)
        real = hardness(self.ID, self.REAL, everything).value
        assert hardness(self.ID, mixture, everything).value < real
        assert hardness(self.ID, mixture, unseen).value > real
        assert hardness(self.ID, self.ID[:300], np.zeros(300, dtype=bool)) is None, "no image is left to judge"

    def test_the_curve_has_the_images_of_each_bin(self):
        source = self.rng.random(600)
        curve = hardness_by_idness(self.ID, self.REAL, source)
        assert sum(each.n for each in curve.values() if each is not None) == 600

    def test_controls(self):
        """ID test and the half-ID mixture fail class by class, real outliers under made-up labels pass."""
        labels = np.repeat(np.arange(10), 60)
        assert not any(each.passes for each in class_checks(labels, labels, self.CONTROL, 10))
        half = np.where(np.arange(600) % 2 == 0, labels, (labels + 1) % 10)
        assert not any(each.passes for each in class_checks(labels, half, self.CONTROL, 10))
        other = self.rng.integers(0, 10, 600)
        assert all(each.passes for each in class_checks(labels, other, self.CONTROL, 10))
        few = class_checks(np.zeros(5, int), np.zeros(5, int), self.CONTROL, 10)
        assert few[0].passes is None

    def test_the_criterion_keeps_each_class_within_its_share(self):
        source = np.repeat([0, 1], 100)
        seen = np.concatenate([np.arange(100) < 80, np.arange(100) < 10])
        kept = class_criterion(source, seen, np.array([0.3, 0.3]))
        for label in (0, 1):
            own = kept & (source == label)
            assert (own & seen).sum() / own.sum() <= 0.3
        assert kept[source == 0].sum() == 28 and kept[source == 1].sum() == 100
