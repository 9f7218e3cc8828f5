"""The store: every image through the network once, ever, whatever happens in between."""

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.activations.probes.perturbation import PerturbedLogits
from oodscope.activations.store import store
from oodscope.activations.store.column import StoredColumn
from oodscope.activations.store.store import ActivationStore
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from tests.tiny import ForwardCounter, classifier, imageset, network


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(store, "BLOCK", 16)


def counted(**kwargs):
    clf = classifier(**kwargs)
    assert clf.head is not None  # found now, so that its noise images are not counted
    return clf, ForwardCounter(clf.model)


def test_extracts_what_the_network_says(tmp_path):
    clf, images = classifier(), imageset("a", 50, 0)
    found = ActivationStore(tmp_path).extract(clf, images)
    batch = clf.prepare(images.images(range(50)))
    with torch.no_grad():
        expected = clf.model.eval()(batch)
    assert torch.allclose(found.logits, expected, atol=1e-6)
    assert torch.allclose(found.head.logits(found.features), expected, atol=1e-5)
    assert found.labels.tolist() == images.labels.tolist()
    assert found.prediction.tolist() == expected.argmax(dim=1).tolist()


def test_each_image_passes_once_and_never_again(tmp_path):
    clf, counter = counted()
    images = imageset("a", 50, 0)
    first = ActivationStore(tmp_path)
    first.extract(clf, images, batch_size=7)
    assert counter.images == first.forwarded == 50
    second = ActivationStore(tmp_path)
    second.extract(clf, images, batch_size=32)
    assert counter.images == 50
    assert second.forwarded == 0


def test_a_probe_costs_exactly_what_it_declares(tmp_path):
    clf, counter = counted()
    probe = PerturbedLogits(1000.0, 0.0014)
    images = imageset("a", 50, 0)
    store_ = ActivationStore(tmp_path)
    store_.extract(clf, images, probes=[probe])
    # the pass that it records for its gradient is the plain one too
    assert counter.images == store_.forwarded == 50 * len(probe.forwards)
    assert counter.backwards == 50 * len(probe.backwards)
    store_.extract(clf, images, probes=[probe])
    assert counter.images == 50 * len(probe.forwards)


@pytest.mark.parametrize("width", [8, 64])
def test_a_recorded_pass_gives_the_bits_of_the_plain_one(tmp_path, width):
    """A wider network than the tiny one, so that the vectorised products of real networks take part."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2)]
    model = nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5))
    clf, images = Classifier(model, Preprocess(size=8), device="cpu"), imageset("a", 70, 0)
    alone = ActivationStore(tmp_path / "1").extract(clf, images, batch_size=32)
    beside = ActivationStore(tmp_path / "2").extract(clf, images, probes=[PerturbedLogits(10.0, 0.01)], batch_size=32)
    assert alone.logits.equal(beside.logits)
    assert alone.features.equal(beside.features)


def test_a_probe_asked_for_later_runs_alone(tmp_path):
    clf, counter = counted()
    probe = PerturbedLogits(1000.0, 0.0014)
    images = imageset("a", 50, 0)
    store_ = ActivationStore(tmp_path)
    store_.extract(clf, images)
    store_.extract(clf, images, probes=[probe])
    assert counter.images == 50 + 50 * len(probe.forwards)


def test_odin_step_is_the_gradient_step(tmp_path):
    """Independent of the probe: plain autograd, image by image, epsilon in pixels of [0, 1]."""
    clf = Classifier(network(), Preprocess(size=8, std=(0.1, 0.2, 0.4)), device="cpu")
    images = imageset("a", 12, 0)
    probe = PerturbedLogits(10.0, 0.01)
    found = ActivationStore(tmp_path).extract(clf, images, probes=[probe])[probe.column]
    for row in range(12):
        x = clf.prepare(images.images([row])).requires_grad_(True)
        scaled = clf.model(x) / 10.0
        torch.nn.functional.cross_entropy(scaled, scaled.argmax(dim=1)).backward()
        step = 0.01 / torch.tensor([0.1, 0.2, 0.4]).view(1, 3, 1, 1)
        with torch.no_grad():
            expected = clf.model(x - step * x.grad.sign())
        assert torch.allclose(found[row : row + 1], expected, atol=1e-5)


def test_batch_size_changes_next_to_nothing(tmp_path):
    images = imageset("a", 90, 0)
    one = ActivationStore(tmp_path / "1").extract(classifier(), images, batch_size=1)
    many = ActivationStore(tmp_path / "2").extract(classifier(), images, batch_size=64)
    spread = one.logits.std()
    assert (one.logits - many.logits).abs().max() <= 1e-4 * spread


@pytest.mark.parametrize("change", ["weights", "structure", "transform", "images"])
def test_anything_that_matters_changes_the_address(tmp_path, change):
    images = imageset("a", 20, 0)
    store_ = ActivationStore(tmp_path)
    clf = classifier()
    store_.extract(clf, images)
    if change == "weights":
        with torch.no_grad():
            clf.model.conv.bias[0] += 1e-3
    elif change == "structure":
        clf.model.pool = torch.nn.AdaptiveMaxPool2d(2)
    elif change == "transform":
        clf = Classifier(clf.model, Preprocess(size=8, std=(0.6, 0.5, 0.5)), device="cpu")
    else:
        images = imageset("a", 20, 1)
    store_.extract(clf, images)
    assert store_.forwarded == 40


def test_a_subset_uses_its_parents_rows(tmp_path):
    clf, images = classifier(), imageset("a", 60, 0)
    store_ = ActivationStore(tmp_path)
    whole = store_.extract(clf, images)
    rows = np.array([5, 3, 59, 3])
    part = store_.extract(clf, images.take(rows))
    assert store_.forwarded == 60
    assert part.logits.equal(whole.logits[torch.from_numpy(rows)])
    assert part.labels.tolist() == images.labels[rows].tolist()


def test_a_subset_extracts_only_itself_and_the_parent_only_the_rest(tmp_path, small_blocks):
    clf, images = classifier(), imageset("a", 60, 0)
    store_ = ActivationStore(tmp_path)
    store_.extract(clf, images.take(np.arange(10, 40)))
    assert store_.forwarded == 30
    whole = store_.extract(clf, images)
    assert store_.forwarded == 60
    fresh = ActivationStore(tmp_path / "fresh").extract(clf, images)
    assert torch.allclose(whole.logits, fresh.logits, atol=1e-5)


@pytest.mark.parametrize("damage", ["cut in half", "one bit", "journal torn", "journal gone", "data gone"])
def test_damage_is_noticed_and_only_the_damaged_blocks_recomputed(tmp_path, small_blocks, damage):
    clf, images = classifier(), imageset("a", 64, 0)
    before = ActivationStore(tmp_path).extract(clf, images)
    logits, features = before.logits.clone(), before.features.clone()
    data = next(tmp_path.rglob("features.bin"))
    journal = data.with_suffix(".journal")
    if damage == "cut in half":
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    elif damage == "one bit":
        content = bytearray(data.read_bytes())
        content[5] ^= 1
        data.write_bytes(content)
    elif damage == "journal torn":
        journal.write_bytes(journal.read_bytes()[:-9])
    elif damage == "journal gone":
        journal.unlink()
    else:
        data.unlink()
    store_ = ActivationStore(tmp_path)
    after = store_.extract(clf, images)
    expected = {"cut in half": 32, "one bit": 16, "journal torn": 16, "journal gone": 64, "data gone": 64}
    assert store_.forwarded == expected[damage]
    assert after.logits.equal(logits)
    assert after.features.equal(features)


def test_nothing_is_pickled(tmp_path):
    ActivationStore(tmp_path).extract(classifier(), imageset("a", 20, 0))
    suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    assert suffixes == {".bin", ".journal"}


def test_column_survives_a_torn_write(tmp_path):
    column = StoredColumn(tmp_path / "x.bin", 100)
    column.write(np.arange(10), np.ones((10, 3), dtype=np.float32))
    with column.journal.open("ab") as journal:
        journal.write(b'{"runs": [[10, 2')  # a writer died here
    again = StoredColumn(tmp_path / "x.bin", 100)
    assert again.present.sum() == 10
    again.write(np.array([20, 21, 40]), np.full((3, 3), 2, dtype=np.float32))
    third = StoredColumn(tmp_path / "x.bin", 100)
    assert np.flatnonzero(third.present).tolist() == [*range(10), 20, 21, 40]
    assert third.read()[40].tolist() == [2, 2, 2]
    assert third.missing(np.array([9, 10, 20])).tolist() == [10]


def test_a_transform_without_identity_leaves_nothing_behind(tmp_path):
    """A function cannot be compared, so what it led to is served within the object and never again."""
    clf = Classifier(network(), lambda picture: torch.zeros(3, 8, 8) + picture.getpixel((0, 0))[0], device="cpu")
    images = imageset("a", 20, 0)
    first = ActivationStore(tmp_path)
    first.extract(clf, images)
    first.extract(clf, images)
    assert first.forwarded == 20
    assert list(tmp_path.iterdir()) == []
