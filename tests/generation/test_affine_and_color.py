"""Affine and colour: torchvision, one image at a time, is the oracle."""

import itertools

import pytest
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as tv

from oodscope.generation.variations.affine import Affine
from oodscope.generation.variations.color import Color
from tests.realdata.packs import pack

DRAW = torch.Generator().manual_seed(0)


def noise(*shape):
    return torch.rand(*shape, generator=DRAW)


def torchvision_affine(values, images, interpolation):
    """Row i of ``values`` (angle, shift x, shift y, scale, shear) applied to image i."""
    mode = InterpolationMode(interpolation)
    return torch.stack(
        [
            tv.affine(image, angle, [right, down], scale, [shear, 0.0], interpolation=mode)
            for image, (angle, right, down, scale, shear) in zip(images, values.tolist())
        ]
    )


def torchvision_color(values, images):
    done = []
    for image, (brightness, contrast, saturation, hue) in zip(images, values.tolist()):
        image = tv.adjust_contrast(tv.adjust_brightness(image, brightness), contrast)
        done.append(tv.adjust_hue(tv.adjust_saturation(image, saturation), hue))
    return torch.stack(done)


CORNERS = torch.tensor(list(itertools.product((0.0, 1.0), repeat=5)))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 24, 40)])
@pytest.mark.parametrize("points", [noise(96, 5), CORNERS], ids=["drawn", "corners"])
def test_affine_is_torchvisions(shape, points):
    images = noise(len(points), *shape)
    bilinear, nearest = Affine(shape), Affine(shape, interpolation="nearest")
    values = bilinear.natural(points.double())
    assert (bilinear(points, images) - torchvision_affine(values, images, "bilinear")).abs().max() < 1e-5
    # between two pixels rounding decides, in torchvision too: what moves when shifted by next to nothing does not count
    shifts = torch.tensor([[0, x, y, 0, 0] for x in (-1e-5, 1e-5) for y in (-1e-5, 1e-5)], dtype=torch.float64)
    expected, *others = (
        torchvision_affine(values + shift, images.double(), "nearest") for shift in (torch.zeros(5), *shifts)
    )
    sure = torch.stack([other == expected for other in others]).all(dim=0)
    assert torch.equal(nearest(points, images)[sure], expected[sure].float())
    assert sure.double().mean() > (0.97 if points is CORNERS else 0.9999)


def test_color_is_torchvisions():
    variation, points = Color(), noise(96, 4)
    images = noise(96, 3, 16, 16)
    images[:8, :, :8] = images[:8, :1, :8]  # greys
    images[8:16, 2] = images[8:16, 1]  # two channels alike
    images[16:20] = images[16:20].round()  # pure colours, black and white
    expected = torchvision_color(variation.natural(points), images)
    assert (variation(points, images) - expected).abs().max() < 1e-5


def test_color_at_the_corners_and_on_one_channel():
    variation = Color()
    points = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)))
    values = variation.natural(points)
    for channels in (1, 3):
        images = noise(16, channels, 12, 12)
        assert (variation(points, images) - torchvision_color(values, images)).abs().max() < 1e-5


def test_hue_wraps():
    images, points = noise(8, 3, 16, 16), torch.full((8, 4), 0.5)
    low, high = points.clone(), points.clone()
    low[:, 3], high[:, 3] = 0, 1
    assert (Color()(low, images) - Color()(high, images)).abs().max() < 2e-6
    assert (Color()(low, images) - images).abs().mean() > 0.1


@pytest.mark.realdata
def test_real_images_as_torchvision_shows_them(real_data):
    images = pack(real_data, "svhn_test_10k").images(range(64))
    images = torch.stack([torch.from_numpy(image) for image in images]).permute(0, 3, 1, 2).float() / 255
    affine, color = Affine(), Color()
    points = noise(64, 5)
    expected = torchvision_affine(affine.natural(points.double()), images, "bilinear")
    assert (affine(points, images) - expected).abs().max() < 1e-5
    points = noise(64, 4)
    assert (color(points, images) - torchvision_color(color.natural(points), images)).abs().max() < 1e-5


def test_the_ranges_are_those_of_the_paper():
    low, high = (Affine((3, 64, 32)).natural(torch.full((1, 5), end)).tolist()[0] for end in (0.0, 1.0))
    assert low == pytest.approx([-45, -10, -20, 0.9, -30])
    assert high == pytest.approx([45, 10, 20, 1.5, 30])
    low, high = (Color().natural(torch.full((1, 4), end)).tolist()[0] for end in (0.0, 1.0))
    assert low == pytest.approx([0.5, 0.5, 0, -0.5])
    assert high == pytest.approx([1.5, 1.5, 2, 0.5])
    assert Affine().parameters == ("angle (°)", "shift x (px)", "shift y (px)", "scale", "shear x (°)")
    assert Affine().identity == (0.5, 0.5, 0.5, 1 / 6, 0.5)
    assert Color().identity == (0.5, 0.5, 0.5, 0.5)
    assert Affine().natural(torch.tensor([Affine().identity])).tolist()[0] == pytest.approx([0, 0, 0, 1, 0], abs=1e-6)
    assert Color().natural(torch.tensor([Color().identity])).tolist() == [[1, 1, 1, 0]]


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_a_shift_moves_right_and_down_and_leaves_black(interpolation):
    images = noise(1, 3, 32, 32)
    moved = Affine(interpolation=interpolation)(torch.tensor([[0.5, 1.0, 0.5, 1 / 6, 0.5]]), images)
    assert torch.equal(moved[..., 10:], images[..., :-10])
    assert not moved[..., :10].any()
    moved = Affine(interpolation=interpolation)(torch.tensor([[0.5, 0.5, 1.0, 1 / 6, 0.5]]), images)
    assert torch.equal(moved[..., 10:, :], images[..., :-10, :])


def test_positions_do_not_depend_on_autocast():
    images, points = noise(16, 3, 32, 32), noise(16, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = Affine()(points, images)
    assert torch.equal(cast, Affine()(points, images))


def test_grey_pixels_have_finite_gradients():
    images = torch.stack([torch.full((3, 4, 4), level) for level in (0.0, 0.25, 1.0)])
    images[1, 0, 0, 0] += 1e-7  # as good as grey
    images.requires_grad_()
    points = torch.full((3, 4), 0.6, requires_grad=True)
    Color()(points, images).square().sum().backward()
    assert points.grad.isfinite().all()
    assert images.grad.isfinite().all()
    assert points.grad[1, 0] > 0
