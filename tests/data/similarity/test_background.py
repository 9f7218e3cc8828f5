"""Copies among pictures that look alike: found where they were planted, and nowhere else."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import oodscope as oods
from oodscope.data.similarity.background import Background, shifted_distances

FASHION = Path("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz")
needs_fashion = pytest.mark.skipif(not FASHION.is_file(), reason="Debian's dataset-fashion-mnist is not installed")


def fashion(count):
    with gzip.open(FASHION) as file:
        return np.frombuffer(file.read(16 + count * 784), np.uint8, offset=16).reshape(-1, 28, 28).copy()


def encoded(image, quality=75):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream))


def shifted(image):
    moved = np.zeros_like(image)
    moved[:, 1:] = image[:, :-1]
    return moved


def bench(train, test):
    sets = {
        name: oods.ImageSet.from_arrays(name, pixels, np.arange(len(pixels)) % 2, ["boot", "shirt"])
        for name, pixels in (("id_train", train), ("id_test", test))
    }
    return oods.Benchmark(name="clothes", version="1", **sets)


@needs_fashion
@pytest.mark.slow
def test_disjoint_grey_pictures_look_alike_and_are_not_the_same():
    pixels = fashion(600)
    found = oods.audit(bench(pixels[:300], pixels[300:]))
    assert found.verdicts()["contamination"] == 0, found.summary()
    assert any(
        "look alike images of id_train, as independent images of these sets do" in line for line in found.summary()
    )


@needs_fashion
@pytest.mark.slow
def test_one_planted_copy_in_a_hundred_is_found():
    pixels = fashion(600)
    train, test = pixels[:300], pixels[300:]
    ways = (lambda image: image, shifted, encoded)
    planted = {90 * number + 7: 80 * number + 3 for number in range(3)}
    for treat, (row, source) in zip(ways, planted.items()):
        test[row] = treat(train[source])
    found = oods.audit(bench(train, test))
    same = {
        (pair.second.row, pair.first.row)
        for pair in found.pairs
        if pair.kind in ("exact", "near") and pair.first.set != pair.second.set
    }
    assert same == set(planted.items())
    assert found.verdicts()["contamination"] == 3


def test_distances_are_those_of_the_best_shift():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 255, (2, 32, 32, 3), dtype=np.uint8)
    moved = np.roll(first, (1, -2), axis=(1, 2))
    distances = shifted_distances(first, moved)
    assert np.allclose(np.diag(distances), 0, atol=1e-5)
    assert distances[0, 1] > 0.8
    assert np.allclose(shifted_distances(first, 255 - first).diagonal(), 1 - 0, atol=0.3)


def test_the_threshold_falls_with_the_number_of_pictures():
    pixels = np.random.default_rng(1).integers(0, 255, (40, 32, 32), dtype=np.uint8)
    background = Background(oods.ImageSet.from_arrays("x", pixels, None))
    assert 0.05 <= background.threshold(10**6) <= background.threshold(100) <= 0.5
    small = np.repeat(pixels[:2][..., None], 3, axis=3)
    nearest = background.nearest([0, 1], small, [0, 1])
    assert (nearest > 0.5).all()
    assert np.allclose(background.nearest([5, 6], small, [5, 6]), 0, atol=1e-5), "it stands in the sample"
