"""Each corruption at each severity equals an independent slow reference, given the same random numbers."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage, stats

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from tests.data.corruptions import references
from tests.examples import examples

DRAWN = [name for name in CORRUPTIONS if name != "frost"]
SIDES = {"cifar": 32, "imagenet": 128}


def scene(side, seed):
    """Something between noise and a photograph: smooth colours, one sharp edge, black, white and grey pixels."""
    rng = np.random.default_rng(seed)
    image = ndimage.gaussian_filter(rng.normal(size=(side, side, 3)), (side / 16, side / 16, 0.5), mode="wrap")
    image = (image - image.min()) / (image.max() - image.min()) + 0.05 * rng.normal(size=image.shape)
    image[:, side // 3] += 0.4
    levels = np.uint8(np.clip(image, 0, 1) * 255)
    levels[2:4, 2:4], levels[2:4, 6:8], levels[2:4, 10:12] = 0, 255, 120
    return levels


def numbers(seed, name, key):
    draws = Draws(seed, name, torch.tensor([key]))
    return lambda purpose, *shape: draws.uniform(purpose, *shape)[0].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("scale", SIDES)
@pytest.mark.parametrize("name", DRAWN)
def test_equals_the_slow_reference(name, scale):
    levels = scene(SIDES[scale], 1)
    images = torch.from_numpy(levels / 255.0).permute(2, 0, 1).repeat(5, 1, 1, 1)
    ours = corrupt_batch(images, name, [1, 2, 3, 4, 5], seed=3, keys=[70] * 5).permute(0, 2, 3, 1).numpy()
    for severity in range(1, 6):
        slow = getattr(references, name)(levels / 255.0, numbers(3, name, 70), severity, scale)
        off = np.abs(ours[severity - 1] - np.clip(slow, 0, 1))
        # where an algorithm cuts to levels half way, a number on the cut may fall to either side
        assert np.quantile(off, 0.999) < 1e-9, (severity, off.max())
        assert np.mean(off > 1e-9) < 1e-3, (severity, np.mean(off > 1e-9))


@pytest.mark.parametrize("name", DRAWN)
def test_bytes_are_the_level_below(name):
    levels = scene(32, 2)
    images = torch.from_numpy(levels).permute(2, 0, 1)[None]
    ours = corrupt_batch(images, name, 3)
    exact = corrupt_batch(images / 255.0, name, 3).to(torch.float64)
    if name in ("jpeg_compression", "pixelate"):
        assert (exact * 255 - ours).abs().max() < 1e-3
    else:
        assert ours.dtype == torch.uint8
        assert ((exact * 255 - ours) > -1e-3).all()
        assert ((exact * 255 - ours) < 1 + 1e-3).all()


class TestJpeg:
    @examples(30)
    @given(
        quality=st.integers(1, 100), height=st.integers(9, 50), width=st.integers(9, 50), seed=st.integers(0, 10**6),
        grain=st.sampled_from([0, 4, 60]), channels=st.sampled_from([1, 3]),
    )  # fmt: skip
    def test_every_level_equals_pillows(self, quality, height, width, seed, grain, channels):
        from oodscope.data.corruptions.jpeg import jpeg_compression

        rng = np.random.default_rng(seed)
        coarse = rng.integers(0, 256, (3, 3, channels)).astype(float)
        smooth = ndimage.zoom(coarse, (height / 3, width / 3, 1), order=1)[:height, :width]
        smooth = np.pad(smooth, ((0, height - len(smooth)), (0, width - smooth.shape[1]), (0, 0)), mode="edge")
        levels = np.clip(smooth + grain * rng.normal(size=smooth.shape), 0, 255).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(levels.squeeze(2) if channels == 1 else levels).save(stream, "JPEG", quality=quality)
        decoded = np.asarray(Image.open(stream)).reshape(levels.shape)
        image = torch.from_numpy(levels / 255.0).permute(2, 0, 1)[None]
        ours = jpeg_compression(image, None, quality=torch.tensor([float(quality)], dtype=torch.float64))
        assert np.array_equal((ours[0].permute(1, 2, 0).numpy() * 255).round(), decoded)

    @pytest.mark.realdata
    def test_photographs(self, real_data):
        from tests.realdata.packs import pack

        levels = np.stack(pack(real_data, "cifar10_test").images(range(100)))
        ours = corrupt_batch(torch.from_numpy(levels).permute(0, 3, 1, 2), "jpeg_compression", 5)
        pillows = [np.asarray(references.recoded(Image.fromarray(image), 40)) for image in levels]
        assert np.array_equal(ours.permute(0, 2, 3, 1).numpy(), np.stack(pillows))


@pytest.mark.parametrize(
    ("side", "shares"),
    [(32, (0.95, 0.9, 0.85, 0.75, 0.65)), (64, (0.9, 0.8, 0.7, 0.6, 0.5)), (224, (0.6, 0.5, 0.4, 0.3, 0.25))],
)
def test_pixels_of_the_published_sizes_equal_pillows(side, shares):
    from oodscope.data.corruptions.pixelate import pixelate

    levels = np.random.default_rng(side).integers(0, 256, (side, side, 3), dtype=np.uint8)
    images = torch.from_numpy(levels / 255.0).permute(2, 0, 1).repeat(5, 1, 1, 1)
    ours = (pixelate(images, None, share=torch.tensor(shares, dtype=torch.float64)) * 255).round()
    for seen, share in zip(ours, shares):
        small = Image.fromarray(levels).resize((int(side * share),) * 2, Image.Resampling.BOX)
        picture = small.resize((side, side), Image.Resampling.BOX)
        assert np.array_equal(seen.permute(1, 2, 0).numpy(), np.asarray(picture))


@examples(60)
@given(rate=st.floats(0, 2000), level=st.floats(1e-9, 1 - 1e-9))
def test_poisson_counts_are_the_quantiles(rate, level):
    from oodscope.data.corruptions.noise import poisson

    count = poisson(torch.tensor([rate], dtype=torch.float64), torch.tensor([level], dtype=torch.float64)).item()
    assert stats.poisson.cdf(count, rate) >= level * (1 - 1e-9)
    assert count == 0 or stats.poisson.cdf(count - 1, rate) < level * (1 + 1e-9)
