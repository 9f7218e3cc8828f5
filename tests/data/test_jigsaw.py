"""Shuffled tiles: nothing gained, nothing lost, always the same."""

import numpy as np
import pytest

from oodscope.data.imageset import ImageSet
from oodscope.data.jigsaw import jigsaw

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)


def test_tiles_move_and_pixels_stay():
    parent = ImageSet.from_arrays("a", PIXELS, [0, 1, 0, 1, 0])
    shuffled = jigsaw(parent)
    for row, (image,) in enumerate(shuffled.images([row]) for row in range(5)):
        assert not np.array_equal(image, PIXELS[row])
        tiles = {image[i : i + 8, j : j + 8].tobytes() for i in range(0, 32, 8) for j in range(0, 32, 8)}
        assert tiles == {PIXELS[row][i : i + 8, j : j + 8].tobytes() for i in range(0, 32, 8) for j in range(0, 32, 8)}
    assert shuffled.name == "a-jigsaw"
    assert set(shuffled.labels) == {-1}


def test_same_seed_same_pixels_and_every_image_its_own_order():
    parent = ImageSet.from_arrays("a", np.repeat(PIXELS[:1], 3, axis=0))
    one, two = jigsaw(parent), jigsaw(parent)
    assert np.array_equal(one.images([0]), two.images([0]))
    assert one.fingerprint == two.fingerprint
    assert jigsaw(parent, seed=1).fingerprint != one.fingerprint
    first, second = one.images([0, 1])
    assert not np.array_equal(first, second)
    assert len(set(one.digests())) == 3


@pytest.mark.parametrize("shape", [(2, 2), (33, 35), (7, 50, 3)])
def test_any_size(shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    (laid,) = jigsaw(ImageSet.from_arrays("a", image[None])).images([0])
    assert laid.shape == image.shape
    assert np.array_equal(np.sort(laid.flatten()), np.sort(image.flatten()))


def test_a_subset_shuffles_its_own_images():
    parent = ImageSet.from_arrays("a", PIXELS).take([3, 1])
    shuffled = jigsaw(parent)
    assert sorted(shuffled.images([0])[0].flatten()) == sorted(PIXELS[3].flatten())
    assert shuffled.sample_ids()[0] == "a/3#jigsaw"
