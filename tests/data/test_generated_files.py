"""A generated set on disk: whole and as its recipe says, or refused by name."""

import json

import numpy as np
import pytest
from PIL import Image

from oodscope.base.errors import DataError, StorageError
from oodscope.data.generated.files import is_generated, open_generated, write_generated
from oodscope.data.generated.record import read_generated
from oodscope.data.images.locating import locate
from oodscope.data.loading import load_benchmark
from oodscope.data.own import own_benchmark

RECIPE = {"method": "recombination", "seed": 3, "window": [0.2, 0.6], "lambda": 1.5}


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (5, 6, 6, 3)).astype(np.uint8)


@pytest.fixture
def folder(tmp_path, pixels):
    place = tmp_path / "near"
    write_generated(place, pixels, [0, 1, 1, 0, -1], RECIPE, kind="near", class_names=["cat", "dog"])
    return place


def test_what_was_written_is_read(folder, pixels):
    images = open_generated(folder)
    assert images.name == "near" and images.class_names == ("cat", "dog")
    assert np.array_equal(np.stack(images.images(range(5))), pixels)
    assert images.labels.tolist() == [0, 1, 1, 0, -1]
    record = read_generated(folder)
    assert record.kind == "near" and record.recipe == RECIPE and record.format == 1
    plain = locate(str(folder / "images")).open("plain", folder)
    assert images.digests() == plain.digests() and images.source.key == plain.source.key


def test_grey_images_without_classes(tmp_path, pixels):
    write_generated(
        tmp_path / "g", pixels[..., :1], None, {}, kind="shifted", information=np.arange(5) / 10, rows=[3, 1, -1, 0, 2]
    )
    images = open_generated(tmp_path / "g", "grey")
    assert images.name == "grey" and images.labels.tolist() == [-1] * 5
    assert images.images([2])[0].shape == (6, 6)
    files = read_generated(tmp_path / "g").files
    assert [each.row for each in files] == [3, 1, None, 0, 2]
    assert [each.information for each in files] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


def test_the_same_images_make_the_same_recipe(tmp_path, pixels):
    first, second = (
        write_generated(tmp_path / name, pixels, None, RECIPE, kind="near", class_names=["a"]) for name in "ab"
    )
    other = write_generated(tmp_path / "c", 255 - pixels, None, RECIPE, kind="near", class_names=["a"])
    assert first == second and first.seal != other.seal


def test_it_is_a_set_like_any_other(folder, tmp_path):
    assert is_generated(folder) and not is_generated(folder / "images")
    assert locate(str(folder)).source == "generated"
    test = tmp_path / "test.npz"
    np.savez(test, images=np.zeros((3, 6, 6, 3), np.uint8), labels=[0, 1, 0], class_names=["cat", "dog"])
    own = own_benchmark(id_test=test, near=[folder])
    assert own.near[0].name == "near" and len(own.near[0]) == 5
    manifest = tmp_path / "bench.yaml"
    manifest.write_text(
        "name: b\nversion: '1'\nsets:\n  id_test: {source: npz, path: test.npz}\n"
        "  near:\n    made: {source: generated, path: near}\n"
    )
    assert load_benchmark(manifest).near[0].fingerprint == own.near[0].fingerprint


def change_image(folder):
    path = folder / "images" / "00002.png"
    Image.fromarray(np.zeros((6, 6, 3), np.uint8)).save(path)


def flip_a_bit(folder):
    path = folder / "images" / "00001.png"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def swap(folder):
    first, second = folder / "images" / "00000.png", folder / "images" / "00003.png"
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def lose_image(folder):
    (folder / "images" / "00004.png").unlink()


def add_image(folder):
    (folder / "images" / "extra.png").write_bytes((folder / "images" / "00000.png").read_bytes())


def edit(change):
    def apply(folder):
        path = folder / "recipe.json"
        declared = json.loads(path.read_text())
        change(declared)
        path.write_text(json.dumps(declared))

    return apply


@pytest.mark.parametrize(
    ("damage", "file", "said"),
    [
        (change_image, "images/00002.png", "not the image that recipe.json names"),
        (flip_a_bit, "images/00001.png", "not the image"),
        (swap, "images/00000.png", "not the image"),
        (lose_image, "images/00004.png", "missing"),
        (add_image, "images/extra.png", "not in recipe.json"),
        (edit(lambda d: d["recipe"].update(seed=4)), "recipe.json", "changed since the set was written"),
        (edit(lambda d: d["files"][0].update(label=1)), "recipe.json", "changed since the set was written"),
        (edit(lambda d: d["files"].pop()), "recipe.json", "changed since the set was written"),
        (edit(lambda d: d.update(kind="shifted")), "recipe.json", "changed since the set was written"),
        (edit(lambda d: d.update(seal="")), "recipe.json", "changed since the set was written"),
        (edit(lambda d: d.update(format=2)), "recipe.json", "written by a newer oodscope"),
        (edit(lambda d: d.update(sead=1)), "recipe.json", "unknown key 'sead'. Did you mean 'seal'"),
        (edit(lambda d: d["files"][0].update(file="../out.png")), "recipe.json", "not the recipe of a generated set"),
        (lambda folder: (folder / "recipe.json").write_text("{"), "recipe.json", "damaged"),
        (lambda folder: (folder / "recipe.json").write_text("[]"), "recipe.json", "not the recipe"),
    ],
)
def test_what_does_not_match_is_refused_in_one_line(folder, damage, file, said):
    damage(folder)
    with pytest.raises(DataError) as caught:
        locate(str(folder)).open("near", folder.parent.parent)
    message = str(caught.value)
    assert str(folder / file) in message and said in message and "\n" not in message


def test_nothing_is_overwritten(folder, pixels):
    with pytest.raises(StorageError, match="holds a generated set already"):
        write_generated(folder, pixels, None, {}, kind="near")
    (folder / "recipe.json").unlink()
    with pytest.raises(StorageError, match="images is not empty"):
        write_generated(folder, pixels, None, {}, kind="near")


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), None),
        (np.zeros((2, 4, 4), np.uint8), None),
        (np.zeros((0, 4, 4, 3), np.uint8), None),
        (np.zeros((2, 4, 4, 3), np.uint8), [0]),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, 2]),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, images, labels):
    with pytest.raises(DataError):
        write_generated(tmp_path / "x", images, labels, {}, kind="near", class_names=["a", "b"])
    assert not (tmp_path / "x").exists()
