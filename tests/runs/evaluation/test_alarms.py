"""Networks and data that do not belong together: named in one line, on three sets of real images."""

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.evaluation.alarms import Answers, accuracy_alarms, name_clashes
from oodscope.runs.evaluation.evaluate import evaluate
from tests.realdata.nets import patch_network
from tests.realdata.packs import load_pack
from tests.tiny import benchmark, imageset, network, noise

PACKS = {
    "mnist_test": (range(10), Preprocess(size=28, mean=(0.1307,), std=(0.3081,))),
    "svhn_test_10k": (range(10), Preprocess(size=32, mean=(0.4377, 0.4438, 0.4728), std=(0.198, 0.201, 0.197))),
    "cifar10_test": ((0, 1, 6, 7), Preprocess(size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.247, 0.2435, 0.2616))),
}
"""Which classes are used, and the preprocessing."""


def alarms(classifier, bench):
    return [note for note in evaluate(classifier, bench, ["msp"], intervals="none").record.notes if "alarm: " in note]


def parts_of(folder, name, classes):
    """2,000 images to learn from and 400 to test on."""
    pixels, extras = load_pack(folder, name)
    number = {label: place for place, label in enumerate(classes)}
    rows = [row for row, label in enumerate(extras["labels"]) if int(label) in number][:2400]
    labels = [number[int(extras["labels"][row])] for row in rows]
    whole = ImageSet.from_arrays(name, pixels[rows], labels, [f"class {label}" for label in classes])
    return whole.take(np.arange(2000)), whole.take(np.arange(2000, 2400), "id_test")


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_wrong_normalisation_and_permuted_classes_are_named(name, real_data):
    classes, transform = PACKS[name]
    train, test = parts_of(real_data, name, classes)
    batch = transform(train.pictures(range(len(train))))
    net = patch_network(batch, torch.from_numpy(train.labels), len(train.class_names))
    bench = Benchmark(name="real", version="1", id_test=test, near=(noise("static", 20, 4),))

    assert alarms(Classifier(net, transform, device="cpu"), bench) == []

    raw = transform.model_copy(update={"mean": (0.0,) * len(transform.mean), "std": (1.0,) * len(transform.std)})
    (line,) = alarms(Classifier(net, raw, device="cpu"), bench)
    assert "the normalisation looks wrong: on 128 images of id_test" in line
    assert "\n" not in line

    order = torch.from_numpy(np.roll(np.arange(len(train.class_names)), 1))
    with torch.no_grad():
        net[1].weight.copy_(net[1].weight[order])
        net[1].bias.copy_(net[1].bias[order])
    (line,) = alarms(Classifier(net, transform, device="cpu"), bench)
    assert "the classes are in another order than the logits" in line
    first = next(place for place, number in enumerate(order) if place != number)
    assert f"logit {first} stands for {train.class_names[order[first]]!r}" in line
    assert "\n" not in line


def answers(label, prediction, classes):
    return Answers(np.asarray(label), np.asarray(prediction), tuple(f"class {number}" for number in range(classes)))


def test_guessing_and_low_accuracy_are_named_and_a_good_network_is_not():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 10, 2000)
    (line,) = accuracy_alarms(answers(label, rng.integers(0, 10, 2000), 10))
    assert "no more than guessing gives" in line
    (line,) = accuracy_alarms(answers(label, np.where(rng.random(2000) < 0.15, label, rng.integers(0, 10, 2000)), 10))
    assert "too low to believe" in line
    assert accuracy_alarms(answers(label, np.where(rng.random(2000) < 0.6, label, rng.integers(0, 10, 2000)), 10)) == []
    assert accuracy_alarms(None) == []


@pytest.mark.parametrize("classes", [2, 10, 200])
def test_two_exchanged_classes_are_found_and_confusions_are_not(classes):
    rng = np.random.default_rng(classes)
    label = rng.integers(0, classes, 40 * classes)
    right = np.where(rng.random(len(label)) < 0.8, label, rng.integers(0, classes, len(label)))
    assert accuracy_alarms(answers(label, right, classes)) == []
    # a network that takes one class for the next more often than not is wrong, and its order is not
    confused = np.where((label == 0) & (rng.random(len(label)) < 0.6), 1, right)
    assert not any("another order" in line for line in accuracy_alarms(answers(label, confused, classes)))
    order = np.roll(np.arange(classes), 1)
    (line,) = accuracy_alarms(answers(label, order[right], classes))
    assert "logit 0 stands for 'class 1'" in line


def test_an_outlier_set_called_like_an_id_class_is_named():
    bench = benchmark(near=(noise("Class_2", 20, 4), noise("snow", 20, 5)))
    (line,) = name_clashes(bench)
    assert "the OOD set 'Class_2' (near) has the name of an ID class: 'Class_2'" in line
    (line,) = name_clashes(benchmark(far=(imageset("rain", 20, 6),)))
    assert "'class 0', 'class 1', 'class 2', ..." in line
    assert name_clashes(benchmark()) == []


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, images):
        return nn.functional.normalize(self.inner(images).repeat(1, 3) ** 3, dim=-1)


@pytest.mark.slow
def test_a_network_that_ends_in_an_embedding_is_evaluated_on_features(tmp_path):
    classifier = Classifier(Embedding(), device="cpu", embedding=True)
    result = evaluate(classifier, benchmark(), "all", intervals="none")
    assert {"knn", "mds", "maha_free"} <= set(result.scores.detectors)
    assert "needs logits" in result.record.skipped["msp"]
    assert set(result.scores.frame["prediction"]) == {-1}
    assert "12 features" in result.record.head
    with pytest.raises(Exception, match="if its output is an embedding, say so"):
        evaluate(Classifier(Embedding(), device="cpu"), benchmark(), ["msp"])
