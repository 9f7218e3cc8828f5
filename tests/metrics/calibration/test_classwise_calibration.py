"""Classwise calibration error against class by class, its interval against the truth."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error

from oodscope.base.errors import DataError
from oodscope.metrics.calibration.calibration import expected_calibration_error
from oodscope.metrics.calibration.classwise import classwise_calibration_error, classwise_interval
from tests.examples import examples


def world(n, seed, power=1.0, classes=5):
    """Probabilities of a network that is calibrated at power 1 and too sure of itself above, and the labels."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.full(classes, 0.4), size=n)
    labels = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, classes - 1)
    sharper = chance**power
    return chance, sharper / sharper.sum(axis=1, keepdims=True), labels


@examples(25)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 6), st.sampled_from([1, 10, 15]))
def test_is_the_mean_over_classes_of_two_class_errors(seed, n, classes, bins):
    _, probabilities, labels = world(n, seed, 1.5, classes)
    ours = classwise_calibration_error(probabilities, labels, bins)
    alone = [expected_calibration_error(probabilities[:, k], labels == k, bins) for k in range(classes)]
    assert ours == pytest.approx(np.mean(alone), abs=1e-12)
    if classes > 1:  # a probability of exactly 1 has a bin of its own in torchmetrics
        columns = zip(torch.tensor(probabilities.T.copy()), torch.tensor(np.eye(classes, dtype=int)[:, labels]))
        theirs = [float(binary_calibration_error(values, truth, n_bins=bins)) for values, truth in columns]
        assert ours == pytest.approx(np.mean(theirs), abs=1e-6)


def test_certain_and_right_is_0_and_certain_and_wrong_is_2_over_k():
    labels = np.arange(12) % 4
    assert classwise_calibration_error(np.eye(4)[labels], labels) == 0
    assert classwise_calibration_error(np.eye(4)[(labels + 1) % 4], labels) == pytest.approx(2 / 4)


def test_sees_what_the_top_class_hides():
    """Two thirds for class 0 on every image, and two thirds of the images right, but the rest is not class 1."""
    probabilities = np.tile([2 / 3, 1 / 3, 0.0], (300, 1))
    labels = np.where(np.arange(300) % 3 < 2, 0, 2)
    assert expected_calibration_error(probabilities.max(axis=1), labels == 0) == pytest.approx(0, abs=1e-12)
    assert classwise_calibration_error(probabilities, labels) == pytest.approx(2 / 9)


@pytest.mark.parametrize(("power", "n"), [(1.0, 300), (1.0, 2000), (2.0, 2000)])
def test_the_interval_covers_the_truth(power, n):
    chance, probabilities, _ = world(200_000, 0, power)
    bins = np.minimum(np.ceil(probabilities * 15).astype(int) - 1, 14)
    gaps = [np.bincount(bins[:, k], chance[:, k] - probabilities[:, k]) for k in range(5)]
    truth = np.mean([np.abs(gap).sum() for gap in gaps]) / len(chance)
    hits = 0
    for seed in range(25):
        _, probabilities, labels = world(n, seed + 1, power)
        interval = classwise_interval(probabilities, labels, seed=seed, replicates=300)
        assert interval.low <= classwise_calibration_error(probabilities, labels) <= interval.high
        hits += interval.low <= truth <= interval.high
    assert hits >= 22


def test_groups_of_images_vary_like_images():
    """The middle of an interval of 2,000 images in 500 groups is as wide as that of one bin and two classes must be."""
    rng = np.random.default_rng(0)
    correct = rng.random(2000) < 0.5
    probabilities, labels = np.tile([0.9, 0.1], (2000, 1)), np.where(correct, 0, 1)
    interval = classwise_interval(probabilities, labels, bins=1, replicates=4000)
    # both classes have the same gap, accuracy - 0.9
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(2000), rel=0.15)
    assert interval.method == "bootstrap-inverted-4000"


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([0.5, 0.5], [0], r"probabilities are \[images, classes\]; their shape is \(2,\)"),
        (np.zeros((0, 3)), [], r"their shape is \(0, 3\)"),
        ([[0.5, 0.6]], [0], "sum to 1; take the softmax of logits"),
        ([[1.5, -0.5]], [0], "must be 0 or more"),
        ([[np.nan, 1.0]], [0], "must be 0 or more"),
        ([[0.5, 0.5]], [0, 1], "1 images need as many class numbers; labels are int64"),
        ([[0.5, 0.5]], [0.0], "labels are float64"),
        ([[0.5, 0.5]], [2], "among the 2 classes of the probabilities; they are 2 to 2"),
        ([[0.5, 0.5]], [-1], "they are -1 to -1"),
    ],
)
def test_mistakes(probabilities, labels, message):
    for call in (classwise_calibration_error, classwise_interval):
        with pytest.raises(DataError, match=message):
            call(probabilities, labels)


def test_no_bins():
    with pytest.raises(DataError, match="at least one bin"):
        classwise_calibration_error([[0.5, 0.5]], [0], bins=0)
