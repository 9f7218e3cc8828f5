"""The packaged split lists against the published ones, on the labels of the real test images."""

import numpy as np
import pytest

from oodscope.data.packaged import row_list

pytestmark = pytest.mark.realdata


@pytest.fixture
def splits(real_data):
    return np.load(real_data / "openood_v15_splits.npz")


@pytest.mark.parametrize("part", ["val", "test"])
def test_cifar10_in_official_order(real_data, splits, part):
    labels = np.load(real_data / "cifar10_test.npz")["labels"].astype(np.int64)
    assert np.array_equal(row_list(f"cifar10_{part}").positions(labels), splits[f"cifar10_{part}_id"])


@pytest.mark.parametrize("part", ["val", "test"])
def test_cifar100_by_number_within_class(real_data, splits, part):
    """The pack deals the classes out in turn and keeps the order within each, so the same rule finds the same rows."""
    labels = np.load(real_data / "cifar100_test.npz")["labels"].astype(np.int64)
    assert np.array_equal(row_list(f"cifar100_{part}").positions(labels), splits[f"cifar100_{part}_id"])


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
@pytest.mark.parametrize("part", ["val", "test"])
def test_tiny_imagenet(splits, dataset, part):
    rows = row_list(f"{dataset}_tin_{part}").positions(np.zeros(10_000, np.int64))
    assert np.array_equal(rows, splits[f"{dataset}_{part}_tin"])
