"""The road on a CUDA device gives the numbers of the road on the CPU."""

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.registry import DETECTORS
from tests.detectors.worlds import activations, world
from tests.tiny import benchmark, classifier, imageset

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("name", DETECTORS.names())
def test_a_detector_says_the_same_on_both(name):
    train, val, test = world(n=900, classes=6, width=24)
    scores = {}
    for device in ("cpu", "cuda"):
        detector = oods.create_detector(name).to(device)
        detector.fit(activations(train, detector.probes), activations(val, detector.probes))
        scores[device] = detector.score(activations(test, detector.probes)).cpu().numpy()
    one, two = scores.values()
    # descent by many small steps drifts apart between devices; what it learns orders the images alike
    if detector.cost is Cost.TRAINING:
        assert np.corrcoef(one, two)[0, 1] > 0.9
    else:
        assert np.abs(one - two).max() <= 1e-3 * one.std()


@pytest.mark.parametrize("name", DETECTORS.names())
def test_columns_may_lie_on_the_device_and_labels_elsewhere(name):
    """As where activations stay in the memory of the device: labels come from the images."""
    detector = oods.create_detector(name).to("cuda")

    def placed(rows):
        host = activations(rows, detector.probes)
        columns = {key: host[key].cuda() for key in host if key not in ("labels", "prediction")}
        named = {key: columns.pop(key) for key in ("logits", "features")}
        return oods.Activations(**named, labels=host.labels, head=host.head, columns=columns)

    train, val, test = world(n=900, classes=6, width=24)
    detector.fit(placed(train), placed(val))
    assert torch.isfinite(detector.score(placed(test))).all()


def test_cuda_and_cpu_agree(tmp_path):
    runs = {
        device: oods.evaluate(
            classifier(device=device), benchmark(4), "all", store=oods.ActivationStore(tmp_path / device)
        )
        for device in ("cpu", "cuda")
    }
    assert runs["cuda"].record.device.startswith("cuda")
    assert runs["cuda"].record.skipped == runs["cpu"].record.skipped
    for name in runs["cpu"].scores.detectors:
        one, two = (runs[device].scores.scores(name) for device in ("cpu", "cuda"))
        detector, apart = oods.create_detector(name), np.abs(one - two)
        if detector.cost is Cost.TRAINING:
            continue
        # a gradient of almost nothing points either way, so a few images step elsewhere on another device
        worst = np.quantile(apart, 0.9) if Needs.GRADIENTS in detector.needs else apart.max()
        assert worst <= 5e-3 * one.std(), name


@pytest.mark.parametrize("name", ["msp", "ebo", "gen", "knn", "mds", "vim", "react", "ash", "klm"])
def test_a_scorer_never_stops_the_device(name):
    scorer = oods.fit_scorer(
        classifier(device="cuda"), name, imageset("held out", 60, 2), imageset("train", 200, 1), target=0.1
    )
    images = torch.rand(16, 3, 8, 8, device="cuda")
    scorer.score_tensor(images)
    torch.cuda.set_sync_debug_mode("error")
    try:
        scores = scorer.score_tensor(images)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert np.allclose(scores.cpu().numpy(), scorer.score(images), rtol=1e-4)
