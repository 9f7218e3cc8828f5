"""On real images with a real network: the figures that were measured when the network was trained.

The far sets are in docs/results/cifar-benchmarks.md: another 10,000 images take a minute and a half here.
"""

import os

import pytest
import torch

import oodscope as oods
from tests.realdata.packs import CIFAR10, pack, resnet18

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

AUROC = {"msp": 87.36, "ebo": 86.36}
"""In percent, of all 10,000 images against all 10,000."""
AUROC_OF_EVERY_TWENTIETH = {"msp": 90.09, "ebo": 89.95}
"""The same of every twentieth image of both, 500 against 500, by PyTorch and scikit-learn without oodscope."""


@pytest.fixture(autouse=True)
def all_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(before)


def evaluated(real_data, folder, step):
    """Every ``step``-th image of the test sets, by MSP and energy; accuracy, AUROCs and the record."""
    known, near = (pack(real_data, name) for name in ("cifar10_test", "cifar100_test"))
    bench = oods.Benchmark(
        name="cifar10",
        version="packs",
        id_test=known.take(range(0, len(known), step)),
        near=(near.take(range(0, len(near), step)),),
    )
    clf = resnet18(real_data, "cifar10", CIFAR10)
    result = oods.evaluate(clf, bench, list(AUROC), store=oods.ActivationStore(folder))
    (accuracy,) = result.measurements.filter(metric="accuracy")
    aurocs = {}
    for detector in AUROC:
        (aurocs[detector],) = result.measurements.filter(detector=detector, set="cifar100_test", metric="auroc")
    return accuracy, aurocs, result.record


@pytest.mark.soak
def test_cifar10_resnet18_against_cifar100(real_data, tmp_path):
    accuracy, aurocs, record = evaluated(real_data, tmp_path, step=1)
    assert accuracy.value == pytest.approx(0.9498, abs=0.002)
    for detector, percent in AUROC.items():
        assert 100 * aurocs[detector].value == pytest.approx(percent, abs=0.5), detector
        assert aurocs[detector].low < aurocs[detector].value < aurocs[detector].high
    assert record.forward_images == 20_000
    assert "1 image of cifar10_test occurs in cifar100_test too" in record.notes


def test_every_twentieth_image_of_cifar10_against_cifar100(real_data, tmp_path):
    accuracy, aurocs, record = evaluated(real_data, tmp_path, step=20)
    assert accuracy.value == 0.944
    for detector, percent in AUROC_OF_EVERY_TWENTIETH.items():
        assert 100 * aurocs[detector].value == pytest.approx(percent, abs=0.1), detector
        assert aurocs[detector].low < aurocs[detector].value < aurocs[detector].high
    assert record.forward_images == 1000
