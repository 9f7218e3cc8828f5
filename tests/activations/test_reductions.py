"""Reductions: shard by shard in a fixed order, so that digits depend on nobody's order of work."""

import numpy as np
import pytest
import torch

from oodscope.activations import activations as module
from oodscope.activations.activations import Activations
from oodscope.activations.moments import REDUCED, gather_moments, join_moments
from oodscope.activations.store import store
from oodscope.activations.store.shards import ShardedColumn, check_shard
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import StorageError
from oodscope.base.place import LocalPlace
from tests.tiny import classifier, imageset

FIELDS = ("counts", "means", "mean", "scatter")


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(module, "REDUCED", 40)


def made(n=150, width=6, classes=4, offset=1e4, seed=0):
    rng = np.random.default_rng(seed)
    features = (offset + rng.normal(size=(n, width))).astype(np.float32)
    return Activations(features=features, labels=rng.integers(-1, classes, n))


def same(a, b):
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in FIELDS) and a.total == b.total


def test_what_is_reduced_by_itself_is_a_shard_of_the_store():
    assert store.BLOCK * store.SHARD == REDUCED


def test_shards_cover_all_rows_in_order(small_shards):
    assert [row for shard in made().shards() for row in shard] == list(range(150))


def test_parts_reduced_in_any_order_and_place_give_the_same_bits(small_shards):
    whole = made().moments()
    shards = made().shards()
    assert len(shards) == 4
    parts = {shard.start: made().moments_within(shard) for shard in reversed(shards)}
    assert same(join_moments([parts[shard.start] for shard in shards]), whole)


@pytest.mark.parametrize("normalised", [False, True])
def test_moments_of_parts_are_those_of_the_definition(small_shards, normalised):
    acts = made()
    h = acts.features.double().numpy()
    if normalised:
        h /= np.linalg.norm(h, axis=1, keepdims=True)
    found, labels = acts.moments(normalised=normalised), acts.labels.numpy()
    assert np.allclose(found.mean, h.mean(axis=0), rtol=1e-13)
    assert np.allclose(found.scatter, (h - h.mean(axis=0)).T @ (h - h.mean(axis=0)), rtol=1e-7, atol=1e-11)
    for c in range(acts.num_classes):
        assert found.counts[c] == (labels == c).sum()
        assert np.allclose(found.means[c], h[labels == c].mean(axis=0), rtol=1e-13)


def test_a_class_that_some_shards_lack(small_shards):
    features = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
    labels = np.repeat([0, 2, 0], 40)
    found = Activations(features=features, labels=labels).moments()
    assert found.counts.tolist() == [80, 0, 40]
    assert np.allclose(found.means[2], features[40:80].astype(np.float64).mean(axis=0))
    assert found.means[1].tolist() == [0, 0, 0]


def test_the_mean_does_not_depend_on_who_asked_before(small_shards):
    first, second = made(), made()
    second.moments()
    second.moments(normalised=True)
    assert torch.equal(first.mean_feature(), second.mean_feature())
    first.mean_feature()
    assert same(first.moments(), second.moments())


def test_one_shard_is_one_pass():
    """Up to a shard, the digits are those of a single pass, as before there were shards."""
    acts = made()
    assert same(acts.moments(), gather_moments([(acts.features, acts.labels)], acts.num_classes))


def test_columns_in_files_give_the_bits_of_those_in_memory(tmp_path, small_shards):
    memory = made()
    column = ShardedColumn(LocalPlace(tmp_path), "x", "x", len(memory))
    for rows in (np.arange(100, 150), np.arange(100)):  # published in another order and other pieces
        column.publish(rows, memory.features.numpy()[rows], {}, 128)
    stored = Activations(
        features=ShardedColumn(LocalPlace(tmp_path), "x", "x", len(memory)), labels=memory.labels.numpy()
    )
    assert same(stored.moments(), memory.moments())
    assert torch.equal(stored.mean_feature(), memory.mean_feature())


class TestPublished:
    """Moments of a stored set are published beside it, where they cost enough, and read by the next process."""

    @pytest.fixture(autouse=True)
    def worth_it(self, monkeypatch):
        monkeypatch.setattr(module, "PUBLISHED", 1)

    @staticmethod
    def extracted(folder, labels=None):
        images = imageset("a", 64, 0)
        found = ActivationStore(folder).extract(classifier(), images)
        if labels is None:
            return found
        return Activations(features=found._columns["features"], labels=labels, head=found.head)

    @staticmethod
    def files(folder):
        return sorted(folder.rglob("features.reduced-*/*.safetensors"))

    @pytest.mark.parametrize("normalised", [False, True])
    def test_the_next_process_reads_the_same_bits(self, tmp_path, monkeypatch, normalised):
        first = self.extracted(tmp_path).moments(normalised=normalised)
        (file,) = self.files(tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(module, "gather_moments", lambda *_, **__: pytest.fail("was published"))
            again = self.extracted(tmp_path).moments(normalised=normalised)
        assert same(first, again) and again.total == 64 and again.counts.dtype == torch.float64
        plain = Activations(features=self.extracted(tmp_path).features, labels=self.extracted(tmp_path).labels)
        assert same(first, plain.moments(normalised=normalised))
        # whoever checks the cache knows it as any other file of the store
        check_shard(file, file.parent.relative_to(tmp_path).as_posix())

    def test_other_labels_and_other_rows_have_their_own(self, tmp_path):
        self.extracted(tmp_path).moments()
        shifted = np.roll(self.extracted(tmp_path).labels.numpy(), 1)
        other = self.extracted(tmp_path, shifted)
        fresh = Activations(features=other.features, labels=shifted, head=other.head)
        assert same(other.moments(), fresh.moments())
        assert len(self.files(tmp_path)) == 2
        part = ActivationStore(tmp_path).extract(classifier(), imageset("a", 64, 0).take(np.arange(40)))
        assert part.moments().total == 40
        assert len(self.files(tmp_path)) == 2  # of a part nothing is published

    @pytest.mark.parametrize("place", [9, -9])
    def test_what_was_damaged_is_computed_and_published_anew(self, tmp_path, place):
        first = self.extracted(tmp_path).moments()
        (file,) = self.files(tmp_path)
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        file.write_bytes(content)
        assert same(self.extracted(tmp_path).moments(), first)
        assert self.files(tmp_path) == [file]
        check_shard(file, file.parent.relative_to(tmp_path).as_posix())

    def test_a_store_that_may_only_be_read_is_enough(self, tmp_path, monkeypatch):
        expected = self.extracted(tmp_path).moments()
        self.files(tmp_path)[0].unlink()

        def refused(*_):
            raise StorageError("read only")

        monkeypatch.setattr(LocalPlace, "create", refused)
        assert same(self.extracted(tmp_path).moments(), expected)
        assert not self.files(tmp_path)

    def test_small_sets_are_faster_computed_than_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "PUBLISHED", 1 << 33)
        self.extracted(tmp_path).moments()
        assert not self.files(tmp_path)
