"""Fréchet distance against SciPy's matrix root, closed forms, and what a squared distance must obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from oodscope.activations.activations import Activations
from oodscope.base.errors import DataError
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from tests.examples import examples


def slow_distance(x, y):
    """The formula as Heusel et al. print it."""
    a, b = np.cov(x, rowvar=False).reshape(2 * (x.shape[1],)), np.cov(y, rowvar=False).reshape(2 * (y.shape[1],))
    shift = x.mean(axis=0) - y.mean(axis=0)
    return shift @ shift + np.trace(a + b - 2 * np.real(sqrtm(a @ b)))


def distance(x, y):
    return frechet_distance(Gaussian.of(x), Gaussian.of(y))


def features(seed, n, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


@examples(40)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_is_the_printed_formula(seed, d):
    x, y = features(seed, 30, d), features(seed + 1, 25, d)
    assert distance(x, y) == pytest.approx(slow_distance(x, y), rel=1e-7, abs=1e-7)


@examples(40)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 20))
def test_a_set_is_at_distance_0_from_itself_even_with_fewer_images_than_dimensions(seed, n, d):
    x = features(seed, n, d)
    assert 0 <= distance(x, x) <= 1e-11 * np.square(x).sum()
    assert distance(x, x[::-1]) <= 1e-11 * np.square(x).sum()


@examples(40)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 20), st.floats(0.1, 20))
def test_a_shift_counts_with_its_square(seed, n, d, length):
    x = features(seed, n, d)
    direction = np.random.default_rng(seed).normal(size=d)
    shifted = x + length * direction / np.linalg.norm(direction)
    assert distance(x, shifted) == pytest.approx(length**2, rel=1e-8, abs=1e-8)


@examples(40)
@given(st.integers(0, 2**32))
def test_is_symmetric_and_blind_to_rotations(seed):
    x, y = features(seed, 20, 5), features(seed + 1, 9, 5)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    assert distance(x, y) == pytest.approx(distance(y, x), rel=1e-9)
    assert distance(x @ turn, y @ turn) == pytest.approx(distance(x, y), rel=1e-9)
    assert distance(3 * x, 3 * y) == pytest.approx(9 * distance(x, y), rel=1e-9)


def test_two_spreads_in_one_dimension():
    """In one dimension it is the squared difference of the means plus that of the standard deviations."""
    x, y = np.array([[0.0], [2.0], [4.0]]), np.array([[1.0], [2.0]])
    assert distance(x, y) == pytest.approx((2 - 1.5) ** 2 + (2 - np.sqrt(0.5)) ** 2)


def test_a_constant_set_has_no_spread():
    assert distance(np.ones((4, 3)), np.zeros((4, 3))) == pytest.approx(3)


def test_comes_from_the_moments_of_activations_as_well():
    x = features(0, 40, 6).astype(np.float32)
    moments = Activations(features=x).moments()
    gathered = Gaussian(moments.mean.numpy(), moments.scatter.numpy(), moments.total)
    np.testing.assert_allclose(gathered.covariance, np.cov(x.astype(float), rowvar=False), atol=1e-9)
    assert frechet_distance(gathered, Gaussian.of(features(1, 40, 6))) == pytest.approx(distance(x, features(1, 40, 6)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Gaussian.of(np.ones((1, 3)), "features of svhn"), r"^features of svhn must be .* shape is \(1, 3\)$"),
        (lambda: Gaussian.of(np.ones(3)), r"their shape is \(3,\)"),
        (lambda: Gaussian.of([[0.0, 1.0], [np.inf, 0.0]]), "row 1 is not"),
        (lambda: distance(np.eye(3), np.eye(4)), "these have 3 and 4 dimensions"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(DataError, match=message):
        call()
