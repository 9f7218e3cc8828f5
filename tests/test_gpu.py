"""The road on a CUDA device gives the numbers of the road on the CPU."""

import numpy as np
import pytest
import torch

import oodscope as oods

from .tiny import benchmark, classifier

pytestmark = pytest.mark.gpu
DETECTORS = ["msp", "mls", "ebo", "knn", "mds", "vim", "react", "odin"]


def test_cuda_and_cpu_agree(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    runs = {
        device: oods.evaluate(
            classifier(device=device), benchmark(4), DETECTORS, store=oods.ActivationStore(tmp_path / device)
        )
        for device in ("cpu", "cuda")
    }
    assert runs["cuda"].record.device.startswith("cuda")
    for detector in DETECTORS:
        one, two = (runs[device].scores.scores(detector) for device in ("cpu", "cuda"))
        assert np.abs(one - two).max() <= 2e-3 * one.std(), detector
    for a, b in zip(runs["cpu"].measurements.filter(metric="auroc"), runs["cuda"].measurements.filter(metric="auroc")):
        assert abs(a.value - b.value) <= 1e-3
