"""Covariate-shifted sets: even, lazy, labelled, and known by recipe."""

from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.sets import corrupt
from oodscope.data.images.folders import open_folder
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.similarity.duplicates import find_duplicates
from tests.data.corruptions.test_against_references import scene
from tests.tiny import benchmark

PIXELS = np.stack([scene(16, seed) for seed in range(8)])
PARENT = ImageSet.from_arrays("a", PIXELS, [0, 1] * 4, ["x", "y"], {"group": list("ppppqqqq")})


@pytest.mark.parametrize(("images", "count"), [(8, 600), (8, 80), (7, 500), (75, 100), (30, 2250), (4, 3)])
def test_every_combination_and_every_image_as_often_as_every_other(images, count):
    parent = ImageSet.from_arrays("a", np.zeros((images, 8, 8), np.uint8))
    source = corrupt(parent, count=count).source
    pairs = Counter(zip(source.corruptions, source.severities.tolist()))
    assert max(pairs.values()) - (min(pairs.values()) if len(pairs) == 75 else 0) <= 1
    taken = np.bincount(source.rows, minlength=images)
    assert taken.max() - taken.min() <= 1
    assert len(set(zip(source.rows.tolist(), source.corruptions, source.severities.tolist()))) == count == len(source)


def test_ten_thousand_as_in_openood():
    parent = ImageSet.from_arrays("a", np.zeros((9000, 8, 8), np.uint8))
    shifted = corrupt(parent)
    pairs = Counter(zip(shifted.source.corruptions, shifted.source.severities.tolist()))
    assert len(shifted) == 10_000
    assert len(pairs) == 75
    assert set(pairs.values()) == {133, 134}
    assert not np.array_equal(corrupt(parent, seed=1).source.rows, shifted.source.rows)


def test_images_are_those_of_corrupt_batch_and_keep_their_labels():
    shifted = corrupt(PARENT, "fog", severity=3, seed=5)
    batch = torch.from_numpy(PIXELS).permute(0, 3, 1, 2)
    expected = corrupt_batch(batch, "fog", 3, seed=5).permute(0, 2, 3, 1).numpy()
    assert np.array_equal(np.stack(shifted.images(range(8))), expected)
    assert np.array_equal(shifted.source.read(6), expected[6])
    assert shifted.labels.tolist() == PARENT.labels.tolist()
    assert shifted.class_names == PARENT.class_names
    assert shifted.hierarchy["group"].tolist() == list("ppppqqqq")
    assert shifted.name == "a-fog-3"
    assert shifted.sample_ids()[2] == "a/2#fog-3"


def test_reading_does_not_depend_on_how_it_is_read():
    shifted = corrupt(PARENT, count=150, seed=2)
    at_once = shifted.images(range(150))
    assert all(np.array_equal(shifted.source.read(row), at_once[row]) for row in range(0, 150, 7))
    order = np.random.default_rng(0).permutation(150)
    assert all(np.array_equal(image, at_once[row]) for image, row in zip(shifted.images(order), order))
    assert len(set(shifted.sample_ids())) == 150


def test_a_subset_is_corrupted_as_the_whole_is():
    part, whole = (corrupt(images, "glass_blur", severity=4) for images in (PARENT.take([5, 2]), PARENT))
    assert np.array_equal(part.images([0, 1]), whole.images([5, 2]))
    assert part.digests() == [whole.digests()[5], whole.digests()[2]]


def test_the_key_follows_parent_and_recipe(monkeypatch):
    base = corrupt(PARENT, count=80)
    monkeypatch.setattr("oodscope.data.corruptions.source.corrupt_batch", None)  # no pixel is computed for a key
    same = corrupt(ImageSet.from_arrays("b", PIXELS.copy(), [0, 1] * 4), count=80)
    assert base.source.key == same.source.key
    other = PIXELS.copy()
    other[3, 0, 0, 0] ^= 1
    keys = {
        base.source.key,
        corrupt(PARENT, count=81).source.key,
        corrupt(PARENT, count=80, seed=1).source.key,
        corrupt(PARENT, "c_extra", count=80).source.key,
        corrupt(ImageSet.from_arrays("a", other), count=80).source.key,
        corrupt(PARENT, "fog", severity=3).source.key,
        corrupt(PARENT, "fog", severity=3.5).source.key,
        corrupt(PARENT, "snow", severity=3).source.key,
    }
    assert len(keys) == 8
    assert len(set(base.digests()) | set(PARENT.digests())) == 88
    monkeypatch.setattr("oodscope.data.corruptions.source.ARITHMETIC", 2)
    assert corrupt(PARENT, count=80).source.key not in keys


def test_what_is_not_comparable_says_so():
    assert corrupt(PARENT).name == "a-c-own-frost"
    assert corrupt(PARENT, "frost", severity=2).name == "a-frost-2-own-frost"
    assert not corrupt(PARENT).source.comparable
    assert corrupt(PARENT, "c_extra").name == "a-c_extra"
    assert corrupt(PARENT, "c_extra").source.comparable
    assert Counter(corrupt(PARENT, "c_extra").source.corruptions).keys() == {
        "speckle_noise", "gaussian_blur", "spatter", "saturate",
    }  # fmt: skip


def test_large_files_are_cropped_as_imagenet_c_was(tmp_path):
    from oodscope.data.preprocess import Preprocess

    rng = np.random.default_rng(0)
    for name, shape in (("large", (300, 400, 3)), ("grey", (260, 300)), ("small", (64, 64, 3)), ("wide", (40, 60, 3))):
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / f"{name}.png")
    parent = open_folder("files", tmp_path)
    shifted = corrupt(parent, "contrast", severity=1)
    shapes = {sample: image.shape for sample, image in zip(parent.sample_ids(), shifted.images(range(4)))}
    assert shapes == {
        "large.png": (224, 224, 3), "grey.png": (224, 224), "small.png": (64, 64, 3), "wide.png": (224, 224, 3),
    }  # fmt: skip
    (large,) = parent.images([parent.sample_ids().index("large.png")])
    crop = torch.from_numpy(Preprocess(size=224, resize=256).crop(large).copy()).permute(2, 0, 1)[None]
    (seen,) = shifted.images([parent.sample_ids().index("large.png")])
    assert np.array_equal(corrupt_batch(crop, "contrast", 1)[0].permute(1, 2, 0).numpy(), seen)


def test_arrays_are_corrupted_as_they_are_stored():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 20, 30), dtype=np.uint8)
    assert corrupt(ImageSet.from_arrays("a", pixels), "contrast", severity=1).images([0])[0].shape == (20, 30)
    alpha = np.random.default_rng(0).integers(0, 256, (3, 20, 30, 4), dtype=np.uint8)
    assert corrupt(ImageSet.from_arrays("a", alpha), "contrast", severity=1).images([0])[0].shape == (20, 30, 3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "cc"}, UnknownNameError, "unknown corruption 'cc'"),
        ({"kind": "frst"}, UnknownNameError, "Did you mean 'frost'"),
        ({"severity": 0}, DataError, "severity 0 is not above 0"),
        ({"severity": 6}, DataError, "severity 6 is not above 0 and at most 5"),
        ({"count": 601}, DataError, "count must be between 1 and 600, not 601"),
        ({"count": 0}, DataError, "count must be between 1 and 600, not 0"),
    ],
)
def test_mistakes(options, error, message):
    with pytest.raises(error, match=message):
        corrupt(PARENT, **options)


YAML = """
name: mine
version: "1"
sets:
  id_test: {source: npz, path: test.npz}
  csid:
    mine_c: {source: corrupted, of: id_test, kind: c, count: 100, seed: 3}
    foggy: {source: corrupted, kind: fog, severity: 2}
"""


class TestManifest:
    @pytest.fixture
    def declared(self, tmp_path):
        np.savez(tmp_path / "test.npz", images=PIXELS, labels=[0, 1] * 4)
        (tmp_path / "mine.yaml").write_text(YAML)
        return tmp_path / "mine.yaml"

    def test_a_corrupted_set_is_declared(self, declared):
        bench = load_benchmark(declared)
        mine, foggy = bench.csid
        assert (mine.name, len(mine), foggy.name, len(foggy)) == ("mine_c", 100, "foggy", 8)
        same = corrupt(bench.id_test, "c", count=100, seed=3)
        assert mine.fingerprint == same.fingerprint
        assert bench.id_labels("csid", mine).tolist() == same.labels.tolist()
        assert find_duplicates(bench).notes() == []

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("of: id_test", "of: id_val", "id_test"),
            ("kind: fog", "knid: fog", "Did you mean 'kind'"),
            ("severity: 2", "severity: 9", "less than or equal to 5"),
            ("kind: fog", "kind: fogg", "Did you mean 'fog'"),
            ("id_test: {source: npz, path: test.npz}", "id_test: {source: corrupted}", "cannot be made by corrupting"),
        ],
    )
    def test_mistakes_are_one_line(self, declared, old, new, message):
        declared.write_text(YAML.replace(old, new, 1))
        with pytest.raises(OodscopeError, match=message) as caught:
            load_benchmark(declared)
        assert "\n" not in str(caught.value)


def test_the_road_takes_a_corrupted_set(tmp_path):
    import oodscope as oods
    from tests.tiny import classifier

    bench = benchmark()
    shifted = corrupt(bench.id_test, count=75)
    store = oods.ActivationStore(tmp_path)
    clf = classifier()
    found = store.extract(clf, shifted)
    assert len(found.logits) == 75
    assert store.forwarded == 75
    store.extract(clf, corrupt(bench.id_test, count=75))
    assert store.forwarded == 75
