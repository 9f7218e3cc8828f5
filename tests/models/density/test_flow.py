"""Glow: every log-determinant is that of the Jacobian, and the density is one."""

import math

import pytest
import torch
from torch import nn

from oodscope.base.errors import ModelError
from oodscope.models.density.base import LEVELS, bits_per_dimension
from oodscope.models.density.glow import (
    ActNorm,
    AffineCoupling,
    FlowStep,
    Glow,
    GlowShape,
    InvertibleConv,
    gaussian,
    spread,
)

TINY = {"levels": 1, "steps": 3, "width": 5}


class Wave(nn.Module):
    """Shift tanh y and raw scale .7 y, written by hand."""

    def forward(self, stays):
        return torch.cat([torch.tanh(stays), 0.7 * stays], dim=1)


def plane():
    """The flow of two numbers that was computed by hand, on an image of one pixel."""
    norm = ActNorm(2).double()
    norm.shift.data = torch.tensor([0.1, -0.2]).double()[:, None, None]
    norm.log_scale.data = torch.tensor([0.5, 2.0]).double().log()[:, None, None]
    mix = InvertibleConv(torch.tensor([[2.0, 1.0], [0.5, 1.5]], dtype=torch.float64))
    return FlowStep(norm, mix, AffineCoupling(1, Wave()))


def random_glow(**settings):
    torch.manual_seed(0)
    glow = Glow(GlowShape(**{"size": 4, **TINY, **settings})).double()
    for weight in glow.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    return glow


def logistic(values, gained):
    """The log-density of what the logit transform made, under a standard logistic."""
    flat = values.flatten()
    return -flat - 2 * torch.nn.functional.softplus(-flat) + gained


def test_two_numbers_by_hand():
    point = torch.tensor([0.3, -0.7]).double().reshape(1, 2, 1, 1)
    moved, gained = plane()(point)
    assert moved.flatten().tolist() == pytest.approx([-1.4, -2.561638], abs=1e-6)
    assert gained.item() == pytest.approx(0.608369, abs=1e-6)
    jacobian = torch.autograd.functional.jacobian(lambda each: plane()(each)[0], point).reshape(2, 2)
    assert gained.item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), abs=1e-12)
    zeros = torch.zeros_like(moved)
    assert (gaussian(moved, zeros, zeros) + gained).item() == pytest.approx(-5.490503, abs=1e-6)
    assert torch.allclose(plane().inverse(moved), point)


def test_the_density_of_two_numbers_integrates_to_one():
    line = torch.linspace(-12, 12, 801, dtype=torch.float64)
    points = torch.cartesian_prod(line, line).reshape(-1, 2, 1, 1)
    with torch.no_grad():
        moved, gained = plane()(points)
        zeros = torch.zeros_like(moved)
        total = (gaussian(moved, zeros, zeros) + gained).exp().sum() * (line[1] - line[0]) ** 2
    assert total.item() == pytest.approx(0.999999, abs=5e-6)


def test_a_mixing_convolution_counts_every_pixel():
    mix = InvertibleConv(torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64))
    image = torch.randn(1, 2, 3, 3, dtype=torch.float64)
    assert mix(image)[1].item() == pytest.approx(9 * math.log(2), abs=1e-9) == pytest.approx(6.238325, abs=1e-6)
    jacobian = torch.autograd.functional.jacobian(lambda each: mix(each)[0], image).reshape(18, 18)
    assert torch.linalg.slogdet(jacobian).logabsdet.item() == pytest.approx(6.238325, abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.05}, {"channels": 1}])
def test_the_whole_flow_follows_its_jacobian_and_back(settings):
    glow = random_glow(**settings)
    image = torch.rand(2, glow.shape.channels, 4, 4, dtype=torch.float64) * 0.9 + 0.05
    latents, gained = glow.encode(image)
    size = glow.shape.dimension

    def flat(each):
        return torch.cat([part.flatten(1) for part in glow.encode(each[None])[0]], dim=1)[0]

    jacobian = torch.autograd.functional.jacobian(flat, image[0]).reshape(size, size)
    assert gained[0].item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), abs=1e-8)
    assert torch.allclose(glow.decode(latents), image, atol=1e-6)


def test_two_levels_split_and_join_in_the_same_order():
    glow = random_glow(size=8, levels=2)
    image = torch.rand(3, 3, 8, 8, dtype=torch.float64)
    latents, _ = glow.encode(image)
    assert [tuple(part.shape[1:]) for part in latents] == [(6, 4, 4), (24, 2, 2)]
    assert torch.allclose(glow.decode(latents), image, atol=1e-6)


def test_the_logit_transform_at_its_ends():
    values = torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64).reshape(3, 1, 1, 1)
    spread_out, gained = spread(values, 0.05)
    assert spread_out.flatten().tolist() == pytest.approx([-2.944439, 2.944439, 0.0], abs=1e-6)
    assert gained.tolist() == pytest.approx([2.941665, 2.941665, 1.280934], abs=1e-6)


@pytest.mark.parametrize(
    ("density", "bits"),
    [
        (lambda v: gaussian(v - 0.5, torch.zeros_like(v), torch.zeros_like(v)), 9.385860),
        (lambda v: gaussian(v - 0.5, torch.zeros_like(v), torch.full_like(v, -0.5 * math.log(12))), 8.254614),
        (lambda v: logistic(*spread(v, 0.05)), 8 - math.log2(0.9)),
        (lambda v: torch.zeros(len(v), dtype=v.dtype), 8.0),
    ],
)
def test_uniform_noise_costs_what_it_should_under_known_densities(density, bits):
    """The mean over all values of a pixel, by quadrature: 8 bits and what the density wastes."""
    values = ((torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000).reshape(-1, 1, 1, 1)
    found = (bits_per_dimension(density(values), 1) + math.log2(LEVELS)).mean().item()
    assert found == pytest.approx(bits, abs=1e-5)


def test_a_logistic_after_the_logit_transform_wastes_its_margin():
    assert 8 - math.log2(0.9) == pytest.approx(8.152003, abs=1e-6)


def test_a_pixel_lies_where_it_is_told_to_in_its_bin():
    glow, pixels = random_glow(), torch.randint(256, (2, 3, 4, 4)) / 255
    glow = glow.float()
    with torch.no_grad():
        assert torch.equal(glow(pixels), glow.placed(pixels, 0.5))
        torch.testing.assert_close(glow.placed(pixels, 0.25), glow.dequantised(pixels, torch.full_like(pixels, 0.25)))
        assert not torch.allclose(glow.placed(pixels, 0.0), glow(pixels), atol=1e-4)


def test_actnorm_is_set_once_by_a_dequantised_batch():
    torch.manual_seed(0)
    glow = Glow(GlowShape(size=8, levels=2, steps=2, width=4))
    pixels = torch.randint(60, 90, (64, 3, 8, 8)) / 255
    glow.initialise(pixels, torch.rand_like(pixels))
    first = glow.steps[0][0].norm
    moved = first(
        torch.nn.functional.pixel_unshuffle(((pixels * 255).round() + torch.rand_like(pixels)) / 256 - 0.5, 2)
    )
    deviation, mean = torch.std_mean(moved[0], dim=(0, 2, 3))
    assert mean.abs().max() < 0.1 and (deviation - 1).abs().max() < 0.1
    before = first.shift.detach().clone()
    glow.initialise(torch.zeros_like(pixels), torch.rand_like(pixels))
    assert torch.equal(first.shift, before), "a loaded flow keeps what it learnt"


@pytest.mark.parametrize(("size", "levels", "words"), [(28, 3, "can be halved 2 times"), (31, 1, "is odd")])
def test_sides_that_cannot_be_halved_are_refused(size, levels, words):
    with pytest.raises(ModelError, match=f"a flow of {levels} levels halves its images {levels} times.*{words}"):
        Glow(GlowShape(size=size, levels=levels))


def test_grey_images_and_other_sizes_are_refused_in_words():
    glow = Glow(GlowShape(size=8, levels=1, steps=1, width=2))
    with pytest.raises(
        ModelError, match=r"glow: its network was trained on colour images \(3 channels\), and these have 1"
    ):
        glow(torch.rand(2, 1, 8, 8))
    with pytest.raises(ModelError, match="trained on 8 x 8 pixels, and these images have 16 x 16"):
        glow(torch.rand(2, 3, 16, 16))
