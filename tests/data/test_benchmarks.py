"""Benchmarks: roles, leaks, duplicates and YAML."""

import numpy as np
import pytest

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError, UsageError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.similarity.duplicates import find_duplicates
from tests.tiny import benchmark, images, imageset, noise


def test_roles_and_splits():
    bench = benchmark()
    assert [role for role, _ in bench.members()] == [
        "id_train", "id_val", "id_test", "near", "near", "far", "csid", "ood_val",
    ]  # fmt: skip
    assert list(bench.test.near) == ["static", "snow"]
    assert bench.validation.ood is bench.ood_val
    assert benchmark(ood_val=None).validation is None


def test_a_covariate_shifted_set_may_hold_some_classes_only():
    pixels, _ = images(6, 0)
    partial = ImageSet.from_arrays("part", pixels, [0, 1, 0, 1, 0, 1], ["class 2", "class 1"])
    bench = benchmark(csid=(partial,))
    assert bench.id_labels("csid", partial).tolist() == [2, 1, 2, 1, 2, 1]
    assert set(bench.id_labels("near", bench.near[0]).tolist()) == {-1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda: {"near": (noise("same", 5, 0), noise("same", 5, 1))}, "two sets are called 'same'"),
        (lambda: {"id_test": imageset("id_test", 8, 0).take([0, 4])}, "id_test.* holds one class only"),
        (
            lambda: {"id_val": ImageSet.from_arrays("id_val", images(8, 0)[0])},
            "id_val set 'id_val' has 8 images without a label",
        ),
        (
            lambda: {"csid": (ImageSet.from_arrays("c", images(2, 0)[0], [0, 1], ["class 1", "cat"]),)},
            "csid set 'c' has the class 'cat'",
        ),
    ],
)
def test_bad_roles(changes, message):
    with pytest.raises(DataError, match=message):
        benchmark(**changes())


class TestDuplicates:
    def test_none_in_a_clean_benchmark(self):
        assert find_duplicates(benchmark()).notes() == []

    def test_validation_inside_test_is_fatal(self):
        pixels, labels = images(60, 2)
        pixels[7] = images(80, 3)[0][5]
        leak = ImageSet.from_arrays("id_val", pixels, labels, [f"class {c}" for c in range(4)])
        with pytest.raises(DataError, match=r"1 image of 'id_test' \(test\) also in 'id_val' \(validation\)"):
            find_duplicates(benchmark(id_val=leak))

    def test_overlapping_subsets_of_one_source_are_fatal(self):
        whole = noise("tin", 60, 4)
        bench = benchmark(
            near=(whole.take(np.arange(0, 40), "tin_test"),), ood_val=whole.take(np.arange(38, 60), "tin_val")
        )
        with pytest.raises(DataError, match=r"2 images of 'tin_test' \(test\) also in 'tin_val' \(validation\)"):
            find_duplicates(bench)

    def test_others_are_counted_and_reported(self):
        pixels = images(80, 3)[0]
        pixels[9] = pixels[8]
        pixels[0] = noise("static", 50, 4).images([11])[0]
        test = ImageSet.from_arrays("id_test", pixels, images(80, 3)[1], [f"class {c}" for c in range(4)])
        found = find_duplicates(benchmark(id_test=test))
        assert found.shared == {("id_test", "id_test"): 1, ("id_test", "static"): 1}
        assert found.notes() == ["1 image of id_test occurs more than once", "1 image of id_test occurs in static too"]


YAML = """
name: mine
version: "2"
root: data
transform: {size: 8}
sets:
  id_train: {source: npz, path: train.npz}
  id_test: {source: npz, path: test.npz}
  near:
    noise: {source: folder, path: noise}
  far:
    listed: {source: list, path: list.txt, images: noise}
"""


@pytest.fixture
def on_disk(tmp_path):
    from PIL import Image

    data = tmp_path / "data"
    (data / "noise").mkdir(parents=True)
    for name, seed in (("train", 1), ("test", 2)):
        pixels, labels = images(16, seed)
        np.savez(data / f"{name}.npz", images=pixels, labels=labels)
    for number, picture in enumerate(noise("n", 6, 0).images(range(6))):
        Image.fromarray(picture).save(data / "noise" / f"{number}.png")
    (data / "list.txt").write_text("0.png -1\n1.png -1\n")
    (tmp_path / "mine.yaml").write_text(YAML)
    return tmp_path / "mine.yaml"


class TestYaml:
    def test_loads_every_source(self, on_disk):
        bench = load_benchmark(on_disk)
        assert isinstance(bench, Benchmark)
        assert (bench.name, bench.version, bench.transform.size) == ("mine", "2", 8)
        assert {images.name: len(images) for _, images in bench.members()} == {
            "id_train": 16, "id_test": 16, "noise": 6, "listed": 2,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("version:", "verison:", r"mine\.yaml: unknown key 'verison'\. Did you mean 'version'"),
            ("id_train:", "id_trian:", r"unknown key 'sets\.id_trian'\. Did you mean 'id_train'"),
            ("path: noise}", "paht: noise}", r"unknown key .*paht'\. Did you mean 'path'"),
            ("source: folder", "source: floder", r"floder"),
            ("train.npz", "gone.npz", r"cannot read .*gone\.npz"),
            ('version: "2"', "version: [", "not valid YAML"),
        ],
    )
    def test_mistakes_are_one_line(self, on_disk, old, new, message):
        on_disk.write_text(YAML.replace(old, new, 1))
        with pytest.raises(OodscopeError, match=message) as caught:
            load_benchmark(on_disk)
        assert "\n" not in str(caught.value)

    def test_unknown_benchmark_suggests_the_nearest(self):
        with pytest.raises(UnknownNameError, match="unknown benchmark 'glyfs'. Did you mean 'glyphs'"):
            load_benchmark("glyfs")

    def test_size_of_a_set_that_is_not_generated(self, on_disk):
        with pytest.raises(UsageError, match="'mine' is not generated"):
            load_benchmark(on_disk, images_per_class=5)


class TestGlyphs:
    def test_the_embedded_benchmark_fills_every_role(self):
        bench = load_benchmark("glyphs", images_per_class=5)
        roles = {role for role, _ in bench.members()}
        assert roles == {"id_train", "id_val", "id_test", "near", "far", "csid", "ood_val", "ood_train"}
        assert len(bench.class_names) == 20
        assert find_duplicates(bench).notes() == []
        assert list(bench.id_train.hierarchy) == ["script", "character", "font"]

    def test_cached_and_drawn_are_equal_and_a_torn_cache_is_drawn_anew(self):
        from oodscope.base.files import cache_root

        first = load_benchmark("glyphs", images_per_class=2).id_train.fingerprint
        assert load_benchmark("glyphs", images_per_class=2).id_train.fingerprint == first
        for file in (cache_root() / "glyphs").glob("*.npz"):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        assert load_benchmark("glyphs", images_per_class=2).id_train.fingerprint == first
