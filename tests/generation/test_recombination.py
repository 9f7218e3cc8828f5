"""Recombined images: every patch is one of a training image, in its place."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.generation.sets.recombination import recombine
from tests.examples import examples


def world(seed, height=9, width=7, channels=3, count=12, classes=3):
    rng = np.random.default_rng(seed)
    pixels = torch.from_numpy(rng.integers(0, 256, (count, channels, height, width)).astype(np.uint8))
    return pixels, torch.arange(count) % classes


@given(st.integers(0, 1000), st.integers(2, 5), st.integers(2, 3), st.integers(5, 11))
@examples(30)
def test_every_cell_is_a_patch_of_its_source(seed, pieces, sources, height):
    pixels, labels = world(seed, height)
    made = recombine(pixels, labels, 8, seed=seed, pieces=pieces, sources=sources)
    assert made.pixels.shape == (8, *pixels.shape[1:]) and made.pixels.dtype == torch.uint8
    for image, rows, choice, label in zip(made.pixels, made.sources, made.choice, made.labels):
        assert len({int(labels[row]) for row in rows}) == sources
        covered = 0
        for row in range(pieces):
            for column in range(pieces):
                down = [y for y in range(height) if y * pieces // height == row]
                across = [x for x in range(7) if x * pieces // 7 == column]
                source = pixels[rows[choice[row, column]]]
                box = np.ix_(range(3), down, across)
                assert np.array_equal(image.numpy()[box], source.numpy()[box])
                covered += len(down) * len(across)
        assert covered == height * 7
        counts = np.bincount(choice.flatten(), minlength=sources)
        assert int(label) == int(labels[rows[int(counts.argmax())]])


def test_the_seed_decides_and_all_classes_take_part():
    pixels, labels = world(0)
    first, again, other = (recombine(pixels, labels, 50, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.pixels, again.pixels) and not torch.equal(first.pixels, other.pixels)
    assert set(first.sources.flatten().tolist()) == set(range(12))
    assert set(first.labels.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sources": 4}, "patches of 4 classes; there are 3"),
        ({"sources": 1}, "2 are needed"),
        ({"pieces": 8}, "cannot be cut into 8 pieces"),
        ({"pieces": 1}, "cannot be cut into 1 pieces"),
    ],
)
def test_what_cannot_be_laid_is_refused(settings, said):
    with pytest.raises(DataError, match=said):
        recombine(*world(0), 3, **settings)
