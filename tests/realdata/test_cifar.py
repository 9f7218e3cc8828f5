"""On real images with a real network: the figures that were measured when the network was trained.

The far sets are in docs/results/cifar-benchmarks.md: another 10,000 images take a minute and a half here.
"""

import os

import pytest
import torch

import oodscope as oods
from tests.realdata.packs import CIFAR10, pack, resnet18

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

EXPECTED = {
    ("msp", "cifar100_test"): 87.36,
    ("ebo", "cifar100_test"): 86.36,
}


@pytest.fixture(autouse=True)
def all_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(before)


def test_cifar10_resnet18_against_cifar100(real_data, tmp_path):
    bench = oods.Benchmark(
        name="cifar10",
        version="packs",
        id_test=pack(real_data, "cifar10_test"),
        near=(pack(real_data, "cifar100_test"),),
    )
    clf = resnet18(real_data, "cifar10", CIFAR10)
    result = oods.evaluate(clf, bench, ["msp", "ebo"], store=oods.ActivationStore(tmp_path))
    (accuracy,) = result.measurements.filter(metric="accuracy")
    assert accuracy.value == pytest.approx(0.9498, abs=0.002)
    for (detector, name), percent in EXPECTED.items():
        (row,) = result.measurements.filter(detector=detector, set=name, metric="auroc")
        assert 100 * row.value == pytest.approx(percent, abs=0.5), (detector, name)
        assert row.low < row.value < row.high
    assert result.record.forward_images == 20_000
    assert "1 image of cifar10_test occurs in cifar100_test too" in result.record.notes
