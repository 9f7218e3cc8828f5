"""A small study of generated sets: five networks, two generated sets, real ones beside them."""

from functools import cache
from tempfile import TemporaryDirectory

import numpy as np
import torch

import oodscope as oods
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.runs.generated.checking import GeneratedChecks
from oodscope.runs.generated.judging import judge_generated
from tests.tiny import TRANSFORM, benchmark, classifier, imageset, network, noise

NEAR, SHIFTED, DIM = "laid", "inverted", "dim"
DETECTORS = ["msp", "mls", "knn", "mds", "vim", "she"]
EVIL = '<b onclick="x">&'
_FOLDER = TemporaryDirectory(prefix="oodscope-tests-")
STORE = oods.ActivationStore(_FOLDER.name)


class Length:
    """A perceptual distance that is the length of the difference: at equal length all sets have it."""

    name = "length"

    def __call__(self, first, second):
        return (second - first).flatten(1).norm(dim=1)


def pixels(images):
    return np.stack(images.images(range(len(images))))


def world_benchmark(**changes):
    test = imageset("id_test", 80, 3)
    first, second = pixels(imageset("a", 60, 11)), pixels(imageset("b", 60, 12, shift=1))
    laid = oods.ImageSet.from_arrays(NEAR, np.maximum(first, second), np.arange(60) % 4, test.class_names)
    inverted = oods.ImageSet.from_arrays(SHIFTED, 255 - pixels(test), test.labels, test.class_names)
    dim = oods.ImageSet.from_arrays(DIM, pixels(test) // 2, test.labels, test.class_names)
    roles = {"id_test": test, "near": (laid, noise("static", 50, 4)), "csid": (inverted, dim, imageset("soft", 40, 7))}
    return benchmark(**{**roles, **changes})


@cache
def trained(seed):
    """A network that knows the classes."""
    net, bench = network(seed), world_benchmark()
    made = oods.Classifier(net, TRANSFORM, device="cpu", name=f"net{seed}")
    batch = made.prepare(bench.id_train.pictures(np.arange(len(bench.id_train))))
    labels = torch.from_numpy(bench.id_train.labels)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(batch), labels).backward()
        optimizer.step()
    net.eval()
    return made


def checks(**changes):
    bench = world_benchmark()
    given = {
        "generated": (NEAR, SHIFTED),
        "judges": (trained(0), trained(1), trained(2)),
        "makers": (trained(3), trained(4)),
        "window": Window(0.05, 0.45),
        "perceptual": Length(),
        "originals": {SHIFTED: bench.id_test, DIM: bench.id_test},
    }
    return GeneratedChecks(**{**given, **changes})


def networks():
    """A network, one that had a part in making the images, and an ensemble with such a member."""
    both = oods.Classifier(Ensemble([network(9), trained(4).model]), TRANSFORM, device="cpu", name="ensemble")
    return classifier(7, name=EVIL), trained(3), both


def _detectors(each):
    return DETECTORS if each.head is not None else ["msp", "mls", "entropy", "gen", "temp_scaling", "ensemble_entropy"]


@cache
def study():
    """Made once for all tests that look at it."""
    bench, store = world_benchmark(), STORE
    runs = [(each, oods.evaluate(each, bench, _detectors(each), store=store)) for each in networks()]
    return judge_generated(runs, bench, checks(), store=store)
