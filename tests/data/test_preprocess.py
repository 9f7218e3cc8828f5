"""Preprocessing agrees with torchvision's, pixel for pixel."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from oodscope.data.preprocess import Preprocess
from tests.examples import examples


@examples(40)
@given(st.integers(8, 70), st.integers(8, 70), st.integers(4, 40), st.integers(0, 30), st.integers(0, 99))
def test_resize_and_crop_are_torchvisions(height, width, size, extra, seed):
    from torchvision import transforms

    pixels = np.random.default_rng(seed).integers(0, 256, size=(height, width, 3)).astype(np.uint8)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
    ours = Preprocess(size=size, resize=size + extra, mean=mean, std=std)([pixels])[0]
    steps = [
        transforms.Resize(size + extra, transforms.InterpolationMode.BILINEAR),
        transforms.CenterCrop(size),
        transforms.ToTensor(),
        transforms.Normalize(mean, std),
    ]
    theirs = transforms.Compose(steps)(Image.fromarray(pixels))
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_grey_becomes_colour_and_colour_grey():
    grey = np.full((4, 4), 51, dtype=np.uint8)
    assert torch.allclose(Preprocess(size=4, mean=(0, 0, 0), std=(1, 1, 1))([grey]), torch.full((1, 3, 4, 4), 0.2))
    colour = np.full((4, 4, 3), 51, dtype=np.uint8)
    assert torch.allclose(Preprocess(size=4, mean=(0,), std=(1,))([colour]), torch.full((1, 1, 4, 4), 0.2))


def test_key_follows_every_setting():
    base = Preprocess(size=32)
    others = [
        Preprocess(size=33),
        Preprocess(size=32, resize=40),
        Preprocess(size=32, mean=(0.1, 0.5, 0.5)),
        Preprocess(size=32, interpolation="nearest"),
    ]
    assert len({base.key, *(other.key for other in others)}) == 5
    assert Preprocess(size=32).key == base.key


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="greater than 0"):
        Preprocess(size=0)
