"""The published constants, seen from outside: what each corruption does to images whose answer is known."""

import numpy as np
import pytest
import torch

from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.blur import disk

CIFAR = {
    "gaussian_noise": [0.04, 0.06, 0.08, 0.09, 0.10],
    "speckle_noise": [0.06, 0.1, 0.12, 0.16, 0.2],
    "shot_noise": [500, 250, 100, 75, 50],
    "impulse_noise": [0.01, 0.02, 0.03, 0.05, 0.07],
    "contrast": [0.75, 0.5, 0.4, 0.3, 0.15],
    "pixelate": [0.95, 0.9, 0.85, 0.75, 0.65],
}
SEVERITIES = [1, 2, 3, 4, 5]


def flat(value, count=60, side=32):
    return torch.full((count, 3, side, side), value, dtype=torch.float64)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_has_its_deviation(severity):
    added = corrupt_batch(flat(0.5), "gaussian_noise", severity) - 0.5
    assert added.mean().abs() < 3e-4
    assert added.std().item() == pytest.approx(CIFAR["gaussian_noise"][severity - 1], rel=0.01)
    for value in (0.2, 0.5):
        speckle = corrupt_batch(flat(value), "speckle_noise", severity) - value
        assert speckle.std().item() == pytest.approx(value * CIFAR["speckle_noise"][severity - 1], rel=0.01)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("value", [0.02, 0.3, 0.6])
def test_shot_noise_has_mean_and_variance_of_a_poisson_count(severity, value):
    photons = CIFAR["shot_noise"][severity - 1]
    seen = corrupt_batch(flat(value), "shot_noise", severity)
    assert seen.mean().item() == pytest.approx(value, rel=0.02)
    assert seen.var().item() == pytest.approx(value / photons, rel=0.03)
    assert (seen * photons - (seen * photons).round()).abs().max() < 1e-9


@pytest.mark.parametrize("severity", SEVERITIES)
def test_half_of_the_lost_pixels_is_salt_and_half_pepper(severity):
    seen = corrupt_batch(flat(0.5), "impulse_noise", severity)
    for value in (0.0, 1.0):
        share = (seen == value).double().mean().item()
        assert share == pytest.approx(CIFAR["impulse_noise"][severity - 1] / 2, rel=0.12)
    assert ((seen == 0) | (seen == 0.5) | (seen == 1)).all()


@pytest.mark.parametrize(
    ("radius", "alias", "half", "total", "pixels"),
    [(0.3, 0.4, 8, 1, 1), (1, 0.2, 8, 1, 5), (1.5, 0.1, 8, 1, 9), (3, 0.1, 8, 1, 29), (10, 0.5, 10, 1.0107858, 317)],
)
def test_the_disk_has_its_radius(radius, alias, half, total, pixels):
    # the total above 1 is the published kernel's own: its rim is mirrored at the border of the grid
    kernel = disk(*(torch.tensor([value], dtype=torch.float64) for value in (radius, alias)), half)[0]
    assert kernel.sum().item() == pytest.approx(total, abs=1e-6)
    assert (kernel > kernel.max() / 2).sum() == pixels
    assert torch.allclose(kernel, kernel.T)


@pytest.mark.parametrize("name", ["gaussian_blur", "motion_blur", "zoom_blur", "glass_blur", "elastic_transform"])
@pytest.mark.parametrize("side", [32, 150])
def test_blur_leaves_a_flat_image_flat(name, side):
    image = torch.full((5, 3, side, side), 137, dtype=torch.uint8)
    assert torch.equal(corrupt_batch(image, name, SEVERITIES), image)


def test_motion_blur_draws_a_tail_along_one_line():
    image = torch.zeros(40, 1, 33, 33, dtype=torch.float64)
    image[:, :, 16, 16] = 1
    tail = corrupt_batch(image, "motion_blur", 5)[:, 0]
    assert tail.sum(dim=(1, 2)) == pytest.approx(np.ones(40), abs=1e-6)
    # the point is seen from up to 2 * 9 pixels to its left, within 45 degrees
    rows, columns = (tail > 1e-9).nonzero()[:, 1:].T
    assert columns.max() == 16
    assert columns.min() >= 16 - 18
    assert ((rows - 16).abs() <= 16 - columns + 1).all()
    assert tail[:, 16, 16] == pytest.approx(np.full(40, 1 / sum(np.exp(-(np.arange(19) ** 2) / 12.5))))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_is_a_slope_about_the_mean(severity):
    image = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen = corrupt_batch(image, "contrast", severity)
    assert torch.allclose(seen.mean(dim=(2, 3)), image.mean(dim=(2, 3)))
    assert torch.allclose(seen.std(dim=(2, 3)), image.std(dim=(2, 3)) * CIFAR["contrast"][severity - 1])


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelate_leaves_as_many_pixels_as_published(severity):
    image = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    row = corrupt_batch(image, "pixelate", severity)[0, 0]
    cells = 1 + int((row.diff(dim=0).abs().sum(dim=1) > 0).sum())
    assert cells == int(32 * CIFAR["pixelate"][severity - 1])


@pytest.mark.parametrize(("severity", "thick"), zip(SEVERITIES, [0.2, 0.5, 0.75, 1, 1.5]))
def test_fog_keeps_the_brightest_in_place(severity, thick):
    image = flat(0.2, 200)
    image[:, :, 0, 0] = 0.8
    seen = corrupt_batch(image, "fog", severity)
    assert seen.max() <= 0.8 + 1e-9
    # a black pixel becomes thick * cloud * m / (m + thick), and clouds reach from 0 to 1
    cloud = seen[:, 0, 1:, 1:] * (0.8 + thick) / 0.8 / thick - 0.2 / thick
    assert -1e-9 < cloud.min() < 0.05
    assert 0.95 < cloud.max() < 1 + 1e-9
    assert 0.4 < cloud.mean() < 0.6


def test_frost_is_the_image_times_keep_plus_ice():
    """Own texture: what can be checked is the mixture, that ice is bluish, and that it covers without hiding."""
    dark, lit = corrupt_batch(flat(0.0, 40), "frost", 3), corrupt_batch(flat(0.3, 40), "frost", 3)
    assert torch.allclose((lit - dark)[lit < 1], torch.tensor(0.3 * 0.9, dtype=torch.float64))
    sheet = dark / 0.4
    assert 0.35 < sheet.mean() < 0.6
    assert sheet.mean(dim=(1, 2, 3)).std() < 0.1
    assert sheet.std(dim=(2, 3)).mean() > 0.1
    red, green, blue = sheet.mean(dim=(0, 2, 3))
    assert red < green < blue


def test_snow_whitens_and_adds_flakes():
    seen = corrupt_batch(flat(0.2, 60), "snow", 1)
    whitened = 0.95 * 0.2 + 0.05 * (1.5 * 0.2 + 0.5)
    assert seen.min().item() == pytest.approx(whitened)
    assert 0.01 < (seen > whitened + 0.1).double().mean() < 0.5


def test_spatter_is_water_then_mud():
    water, mud = (corrupt_batch(flat(0.5, 40), "spatter", severity) for severity in (3, 5))
    assert water.min() >= 0.5
    assert (water > 0.5).double().mean() > 0.05
    assert mud.max() <= 0.5 + 1e-9
    covered = mud[:, 0] < 0.5
    assert 0.02 < covered.double().mean() < 0.5
    assert mud.min().item() == pytest.approx(20 / 255, rel=1e-3)


def test_an_image_without_drops_stays_dry():
    from oodscope.data.corruptions.spatter import water

    assert torch.equal(water(torch.zeros(2, 1, 16, 16, dtype=torch.float64)), torch.zeros(2, 1, 16, 16))
