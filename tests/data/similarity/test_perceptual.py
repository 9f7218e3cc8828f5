"""Copies of a picture are found however they were treated; different pictures are not taken for copies."""

import numpy as np
import pytest

from oodscope.data.images.decoding import as_rgb, picture_digest
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import VIEWS, close_pairs, is_flat, perceptual_hashes, resemblance, thumbnails
from oodscope.data.similarity.signatures import read_signatures
from oodscope.runs.audit.pairs import RADIUS, by_hash, is_alike
from tests.pictures import COPIES, clouds


def distance(one, two):
    """Bits between packed hashes."""
    return int(np.unpackbits(one ^ two).sum())


def slow_hash(small):
    """The definition, one frequency at a time."""
    grey = small.astype(float) @ [0.299, 0.587, 0.114]
    pairs = sorted(((u, v) for u in range(32) for v in range(32)), key=lambda p: (p[0] + p[1], p))[1:65]
    i = 2 * np.arange(32) + 1
    return [(grey * np.outer(np.cos(np.pi * u * i / 64), np.cos(np.pi * v * i / 64))).sum() > 0 for u, v in pairs]


def test_the_hash_is_the_sign_of_64_low_frequencies():
    small = np.stack([thumbnails(image) for image in clouds(6, 0)])
    fast = np.unpackbits(perceptual_hashes(small), axis=-1)
    assert fast.shape == (6, len(VIEWS), 64)
    for picture in range(6):
        for view in range(len(VIEWS)):
            assert fast[picture, view].tolist() == slow_hash(small[picture, view])


def test_brightness_and_contrast_do_not_count():
    (image,) = clouds(1, 1)
    quiet = (image // 2 + 20).astype(np.uint8)
    assert distance(perceptual_hashes(thumbnails(image)[0]), perceptual_hashes(thumbnails(quiet)[0])) <= 2
    assert resemblance(thumbnails(image), thumbnails(quiet)).whole > 0.999
    assert resemblance(thumbnails(image), thumbnails(255 - image)).whole < 0


def test_views_are_what_their_boxes_say():
    image = np.zeros((32, 32, 3), np.uint8)
    image[:2] = 255
    shown = thumbnails(image)[:, 0, 16, 0] > 128
    assert shown.tolist() == [box[1] == 0 for box in VIEWS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", COPIES)
def test_copies_are_found(kind):
    originals = clouds(150, 2)
    copies = [COPIES[kind](image) for image in originals]
    first = read_signatures(ImageSet.from_arrays("originals", originals))
    second = read_signatures(ImageSet.from_arrays("copies", np.stack(copies)))
    candidates = set(by_hash(first, second))
    found = [
        (row, row) in candidates and is_alike(resemblance(thumbnails(originals[row]), thumbnails(copies[row])))
        for row in range(150)
    ]
    assert np.mean(found) >= 0.96, np.mean(found)


@pytest.mark.slow
def test_false_alarms_are_rare():
    """Two million pairs of different pictures: not one is taken for a copy."""
    images = clouds(2000, 3)
    seen = read_signatures(ImageSet.from_arrays("clouds", images))
    candidates = by_hash(seen, seen)
    alike = [resemblance(thumbnails(images[i]), thumbnails(images[j])) for i, j in candidates]
    assert len(candidates) < 1000
    assert sum(map(is_alike, alike)) == 0


def test_close_pairs_are_all_and_only_those_within_the_radius(monkeypatch):
    monkeypatch.setattr("oodscope.data.similarity.perceptual._BLOCK", 7)
    rng = np.random.default_rng(4)
    first = rng.integers(0, 256, size=(40, 8)).astype(np.uint8)
    second = first[rng.integers(0, 40, size=30)].copy()
    for row in range(30):
        bits = np.unpackbits(second[row])
        flipped = rng.choice(64, size=row % 20, replace=False)
        bits[flipped] ^= 1
        second[row] = np.packbits(bits)
    for radius in (0, 5, RADIUS):
        found = {
            (int(i), int(j)) for rows, columns in close_pairs(first, second, radius) for i, j in zip(rows, columns)
        }
        assert found == {(i, j) for i in range(40) for j in range(30) if distance(first[i], second[j]) <= radius}


def test_plain_pictures_equal_pictures_and_crowds_are_no_candidates():
    images = clouds(30, 5)
    images[3] = images[2]
    images[4:6] = 127
    images[5, :4] = 129
    seen = read_signatures(ImageSet.from_arrays("some", images))
    assert is_flat(thumbnails(images[5])[0]) and seen.flat.tolist() == [row in (4, 5) for row in range(30)]
    assert by_hash(seen, seen) == []
    rng = np.random.default_rng(6)
    crowd = np.clip(images[:1] + rng.integers(-6, 7, size=(60, 32, 32, 3)), 0, 255).astype(np.uint8)
    alike = read_signatures(ImageSet.from_arrays("crowd", crowd))
    assert by_hash(alike, alike) is None
    assert by_hash(seen, alike) is not None


def test_equal_pixels_are_equal_whatever_they_were_stored_as():
    grey = clouds(1, 7)[0][:, :, 0]
    colour = np.stack([grey] * 3, axis=2)
    clear = np.concatenate([colour, np.full((32, 32, 1), 9, np.uint8)], axis=2)
    assert len({picture_digest(each) for each in (grey, grey[:, :, None], colour, clear)}) == 1
    assert picture_digest(colour) != picture_digest(colour[:, ::-1])
    assert picture_digest(colour[:20]) != picture_digest(colour[:, :20])
    assert as_rgb(grey).shape == (32, 32, 3)
