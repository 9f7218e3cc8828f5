"""The store: every image through the network once, ever, whatever happens in between."""

import errno
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.activations.probes.perturbation import PerturbedLogits
from oodscope.activations.store import store
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import ActivationError
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


@pytest.mark.parametrize("change", ["weights", "structure", "transform", "images", "tf32", "bf16"])
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
    elif change in ("tf32", "bf16"):
        clf = Classifier(clf.model, clf.transform, device="cpu", precision=change)
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


def damage(file, kind, rng, other):
    """Spoil a published file in place."""
    content = bytearray(file.read_bytes())
    if kind == "cut":
        content = content[: int(rng.integers(0, len(content)))]
    elif kind == "bit":
        content[int(rng.integers(0, len(content)))] ^= 1 << int(rng.integers(0, 8))
    elif kind == "head":
        content[int(rng.integers(0, 200))] ^= 0x55
    elif kind == "grown":
        content += bytes(8)
    elif kind == "zeros":
        start = int(rng.integers(0, len(content) - 64))
        content[start : start + 64] = bytes(64) if any(content[start : start + 64]) else b"x" * 64
    elif kind == "other":
        content = bytearray(other.read_bytes())
    file.unlink()
    if kind != "gone":
        file.write_bytes(content)


KINDS = ("cut", "bit", "head", "grown", "zeros", "other", "gone")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_shard_is_noticed_and_computed_anew(tmp_path, small_blocks, monkeypatch, kind):
    monkeypatch.setattr(store, "SHARD", 2)
    clf, images = classifier(), imageset("a", 64, 0)
    before = ActivationStore(tmp_path).extract(clf, images)
    logits, features = before.logits.clone(), before.features.clone()
    files = sorted(tmp_path.rglob("features/shard-*"))
    assert len(files) == 2
    damage(files[1], kind, np.random.default_rng(0), next(tmp_path.rglob("logits/shard-*")))
    store_ = ActivationStore(tmp_path)
    after = store_.extract(clf, images)
    assert store_.forwarded == 32
    assert after.logits.equal(logits)
    assert after.features.equal(features)


@pytest.mark.slow
@pytest.mark.parametrize("count", [21, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("at_once", [0, 2**30])
def test_damage_is_computed_anew_or_refused_and_never_served(tmp_path, small_blocks, monkeypatch, count, at_once):
    monkeypatch.setattr(store, "SHARD", 2)
    monkeypatch.setattr(store, "AT_ONCE", at_once)
    clf, images = classifier(), imageset("a", 80, 0)
    expected = ActivationStore(tmp_path).extract(clf, images)
    expected = {name: expected[name].clone() for name in ("features", "logits")}
    for turn in range(count):
        rng = np.random.default_rng(turn)
        files = sorted(tmp_path.rglob("*.safetensors"))
        spoiled, other = rng.choice(len(files), 2, replace=False)
        damage(files[spoiled], KINDS[turn % len(KINDS)], rng, files[other])
        try:
            seen = ActivationStore(tmp_path).extract(clf, images)
            assert all(seen[name].equal(values) for name, values in expected.items())
        except ActivationError as error:
            assert at_once == 0
            assert str(files[spoiled]) in str(error)
        # whatever was refused was removed: the next run has it again
        again = ActivationStore(tmp_path).extract(clf, images)
        assert all(again[name].equal(values) for name, values in expected.items())


def test_a_store_that_may_only_be_read_is_read(tmp_path, small_blocks):
    """Another user's store: nothing in it can be written, and nothing has to be."""
    clf, images = classifier(), imageset("a", 64, 0)
    expected = ActivationStore(tmp_path / "s").extract(clf, images).features.clone()
    state = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with unwritable(tmp_path / "s"):
        store_ = ActivationStore(tmp_path / "s")
        found = store_.extract(clf, images)
        assert found.features.equal(expected)
        assert found.moments().total == 64
        assert store_.forwarded == 0
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == state


@contextmanager
def unwritable(folder):
    """No file may be made, changed or removed below; the super-user, whom modes do not stop, is stopped in Python."""
    refused = PermissionError(errno.EACCES, "Permission denied")

    def reading(path, flags, *rest, **more):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise refused
        return plain(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patched:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            plain = os.open
            patched.setattr(os, "open", reading)
            for name in ("link", "mkdir", "unlink", "rename", "truncate"):
                patched.setattr(os, name, Mock(side_effect=refused))
        yield
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


OTHER_USER = """
import os, sys, tempfile
sys.path[:] = {path!r}
from oodscope.activations.store.store import ActivationStore
from tests.tiny import classifier, imageset
with tempfile.TemporaryDirectory() as folder:  # all that is imported late, while the installation may be read
    ActivationStore(folder).extract(classifier(), imageset("b", 8, 0)).moments()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    open({folder!r} + "/mine", "w")
    sys.exit("this user may write")
except PermissionError:
    pass
store = ActivationStore({folder!r})
found = store.extract(classifier(), imageset("a", 64, 0))
assert store.forwarded == 0
print(found.features.double().sum().item().hex(), found.moments().mean.sum().item().hex())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may become somebody else")
def test_another_user_reads_a_store(tmp_path, small_blocks):
    """A process of a user who owns nothing and may write nowhere reads what root extracted."""
    with TemporaryDirectory() as home:  # not in tmp_path, which only its owner may enter
        Path(home).chmod(0o755)
        made = ActivationStore(f"{home}/s").extract(classifier(), imageset("a", 64, 0))
        expected = [made.features.double().sum().item().hex(), made.moments().mean.sum().item().hex()]
        state = {path: path.stat().st_mtime_ns for path in Path(home).rglob("*")}
        program = OTHER_USER.format(path=[str(Path.cwd()), *sys.path], folder=f"{home}/s")
        environment = {**os.environ, "HOME": "/nonexistent", "OODSCOPE_CACHE": "/nonexistent"}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == expected
        assert {path: path.stat().st_mtime_ns for path in Path(home).rglob("*")} == state


def test_activations_say_which_devices_computed_them(tmp_path, small_blocks, monkeypatch):
    clf, images = classifier(), imageset("a", 64, 0)
    assert ActivationStore(tmp_path).extract(clf, images.take(np.arange(32))).made_on == {"cpu"}
    monkeypatch.setattr(store, "_device_name", lambda device: "another")
    assert ActivationStore(tmp_path).extract(clf, images).made_on == {"cpu", "another"}


def test_parts_of_a_shard_are_joined(tmp_path, small_blocks):
    clf, images = classifier(), imageset("a", 60, 0)
    store_ = ActivationStore(tmp_path / "s")
    for rows in ([3, 4, 5, 40], [41], np.arange(8, 24)):
        store_.extract(clf, images.take(rows))
    whole = store_.extract(clf, images)
    assert store_.forwarded == 60
    fresh = ActivationStore(tmp_path / "fresh").extract(clf, images)
    assert torch.allclose(whole.features, fresh.features, atol=1e-5)
    order = np.random.default_rng(0).permutation(60)
    assert whole.take(order).features.equal(whole.features[torch.from_numpy(order)])
    assert len(list(tmp_path.rglob("s/*/*/features/part-*"))) == 4


def test_a_slow_network_publishes_what_it_has(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.0)
    ActivationStore(tmp_path).extract(classifier(), imageset("a", 60, 0))
    assert len(list(tmp_path.rglob("features/part-*"))) == 4


def test_nothing_is_pickled(tmp_path):
    ActivationStore(tmp_path).extract(classifier(), imageset("a", 20, 0))
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".safetensors"}


def test_several_networks_share_the_decoded_images(tmp_path, monkeypatch):
    images, clfs = imageset("a", 50, 0), [classifier(seed) for seed in range(3)]
    alone = [ActivationStore(tmp_path / "1").extract(clf, images, batch_size=16) for clf in clfs]
    read, plain = [], type(images.source).read
    monkeypatch.setattr(type(images.source), "read", lambda self, row: read.append(row) or plain(self, row))
    store_ = ActivationStore(tmp_path / "2")
    together = store_.extract_many(clfs, images, batch_size=16)
    assert sorted(read) == list(range(50))
    assert store_.forwarded == 150
    for one, other in zip(alone, together):
        assert one.logits.equal(other.logits)
        assert one.features.equal(other.features)


def test_float16_takes_half_the_space_and_refuses_what_it_cannot_hold(tmp_path):
    clf, images = classifier(), imageset("a", 50, 0)
    full = ActivationStore(tmp_path / "1").extract(clf, images)
    half = ActivationStore(tmp_path / "2", storage="float16").extract(clf, images)
    assert half.features.dtype == torch.float16
    assert torch.equal(half.features, full.features.half())
    assert next(half.chunks()).features.dtype == torch.float32
    with torch.no_grad():
        clf.model.head.weight *= 1e7
    with pytest.raises(ActivationError, match="logits reach .* use storage='float32'"):
        ActivationStore(tmp_path / "3", storage="float16").extract(clf, images)


def test_logits_from_the_head(tmp_path, monkeypatch):
    clf, images = classifier(), imageset("a", 50, 0)
    full = ActivationStore(tmp_path / "1").extract(clf, images)
    derived = ActivationStore(tmp_path / "2", logits="from_head").extract(clf, images)
    assert not list((tmp_path / "2").rglob("logits"))
    assert (derived.logits - full.logits).abs().max() <= 1e-4 * full.logits.std()
    assert derived.prediction.equal(full.prediction)
    rows = [7, 3, 30]
    assert torch.allclose(derived.take(rows).logits, full.take(rows).logits, atol=1e-5)
    monkeypatch.setattr(store, "MOST_STORED", 3)
    ActivationStore(tmp_path / "3").extract(clf, images)
    assert not list((tmp_path / "3").rglob("logits"))


def test_a_transform_without_identity_leaves_nothing_behind(tmp_path):
    """A function cannot be compared, so what it led to is served within the object and never again."""
    clf = Classifier(network(), lambda picture: torch.zeros(3, 8, 8) + picture.getpixel((0, 0))[0], device="cpu")
    images = imageset("a", 20, 0)
    first = ActivationStore(tmp_path)
    first.extract(clf, images)
    first.extract(clf, images)
    assert first.forwarded == 20
    assert list(tmp_path.iterdir()) == []


def test_a_shard_of_many_columns_is_not_waited_for():
    disk, column = Event(), Mock()
    column.publish.side_effect = lambda *_: disk.wait(60)
    with store._Publisher() as publisher:
        publisher.submit([(column, [(np.arange(2), np.ones(2))])] * 5, {}, 2)
        disk.set()  # nobody could have published before
    assert column.publish.call_count == 5
