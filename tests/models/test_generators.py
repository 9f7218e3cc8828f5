"""Generators and discriminators against slow references, and the file they are kept in."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from oodscope.base.errors import ModelError, StorageError
from oodscope.models.generators.saved import load_generator, read_record, save_generator
from oodscope.models.generators.stylegan import (
    Discriminator,
    GeneratorShape,
    ModulatedConv,
    StyleGenerator,
    minibatch_deviation,
)

SMALL = GeneratorShape(size=8, latent=6, width=4)


@pytest.fixture
def small() -> StyleGenerator:
    torch.manual_seed(0)
    generator = StyleGenerator(SMALL).eval()
    with torch.no_grad():
        for layer in (generator.first, *generator.ups, *generator.convs):
            layer.strength.fill_(0.3)
            layer.bias.normal_()
        generator.settle_mean_style(torch.randn(100, 6))
    return generator


def slow_modulated(conv: ModulatedConv, image: np.ndarray, style: np.ndarray) -> np.ndarray:
    """One image, its own kernel, one product at a time, from the equations of the paper."""
    scales = style @ conv.affine.weight.detach().double().numpy().T / math.sqrt(len(style))
    scales = scales + conv.affine.bias.detach().double().numpy()
    kernel = conv.weight.detach().double().numpy() * conv.scale * scales[None, :, None, None]
    if conv.demodulate:
        kernel = kernel / np.sqrt((kernel**2).sum((1, 2, 3), keepdims=True) + 1e-8)
    outputs, inputs, size, _ = kernel.shape
    side = image.shape[1]
    if conv.up:
        large = np.zeros((outputs, 2 * side + 1, 2 * side + 1))
        for j, i, y, x, a, b in np.ndindex(outputs, inputs, side, side, size, size):
            large[j, 2 * y + a, 2 * x + b] += image[i, y, x] * kernel[j, i, a, b]
        return large[:, 1:, 1:] + large[:, :-1, 1:] + large[:, 1:, :-1] + large[:, :-1, :-1]
    padded = np.pad(image, ((0, 0), (size // 2, size // 2), (size // 2, size // 2)))
    made = np.zeros((outputs, side, side))
    for j, i, y, x, a, b in np.ndindex(outputs, inputs, side, side, size, size):
        made[j, y, x] += padded[i, y + a, x + b] * kernel[j, i, a, b]
    return made


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize(("kernel", "demodulate"), [(3, True), (3, False), (1, False)])
def test_modulated_convolution_is_one_kernel_per_image(kernel, demodulate, up):
    if up and kernel == 1:
        pytest.skip("colours are not doubled by a convolution")
    torch.manual_seed(1)
    conv = ModulatedConv(3, 4, 5, kernel=kernel, demodulate=demodulate, up=up).double()
    conv.affine.bias.data.normal_()
    images, styles = torch.randn(3, 3, 4, 4).double(), torch.randn(3, 5).double()
    made = conv(images, styles).detach().numpy()
    slow = np.stack([slow_modulated(conv, image, style) for image, style in zip(images.numpy(), styles.numpy())])
    np.testing.assert_allclose(made, slow, rtol=0, atol=1e-10)


def test_before_training_a_style_of_zeros_changes_nothing():
    conv, images = ModulatedConv(3, 4, 5, kernel=1, demodulate=False), torch.randn(2, 3, 4, 4)
    expected = torch.einsum("oi,nihw->nohw", conv.weight[:, :, 0, 0] / math.sqrt(3), images)
    torch.testing.assert_close(conv(images, torch.zeros(2, 5)), expected)


@pytest.mark.parametrize("up", [False, True])
def test_demodulation_brings_white_noise_back_to_unit_variance(up):
    torch.manual_seed(2)
    conv = ModulatedConv(64, 64, 8, up=up)
    styles = 5 * torch.randn(16, 8)
    made = conv(torch.randn(16, 64, 16, 16), styles).detach()[:, :, 2:-2, 2:-2]
    assert made.var((1, 2, 3)).numpy() == pytest.approx(np.ones(16), abs=0.12)
    conv.demodulate = False
    assert conv(torch.randn(16, 64, 16, 16), styles).var() > 5


@pytest.mark.parametrize(("size", "channels"), [(28, 1), (32, 3), (64, 3)])
def test_sizes(size, channels):
    torch.manual_seed(0)
    generator = StyleGenerator(GeneratorShape(size=size, channels=channels, width=4))
    drawn = generator(torch.randn(4, 64))
    assert drawn.shape == (4, channels, size, size) and bool(drawn.isfinite().all())
    assert Discriminator(size, channels, 4)(drawn).shape == (4,)


@pytest.mark.parametrize("size", [30, 33, 100, 17])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ModelError, match=f"{size} px.*28, 32 or 64"):
        StyleGenerator(GeneratorShape(size=size, width=4))
    with pytest.raises(ModelError, match=f"{size} px"):
        Discriminator(size)


def test_the_detector_dominates_a_search():
    generator, counted = StyleGenerator(GeneratorShape()), []

    def count(layer, given, made):
        pixels = given[0][0, 0] if layer.up else made[0, 0]
        counted.append(layer.weight.numel() * pixels.numel())

    for layer in generator.modules():
        if isinstance(layer, ModulatedConv):
            layer.register_forward_hook(count)
    with torch.no_grad():
        generator(torch.randn(2, 64))
    per_image = sum(counted) / 1e9
    assert 0.05 < per_image < 0.1, "billions of multiplications; a ResNet-18 has 0.555"


@torch.no_grad()
def test_an_image_is_a_function_of_the_direction_of_its_latent(small):
    latents = torch.randn(6, 6)
    drawn = small(latents)
    assert torch.equal(small(latents), drawn)
    torch.testing.assert_close(small(7 * latents), drawn)
    torch.testing.assert_close(torch.cat([small(latents[:2]), small(latents[2:])]), drawn)
    assert float((drawn[0] - drawn[1]).abs().max()) > 0.1


@torch.no_grad()
def test_noise_is_constant_and_matters(small):
    latents = torch.randn(2, 6)
    before = small(latents)
    small.convs[-1].noise.neg_()
    assert float((small(latents) - before).abs().max()) > 0.01


@torch.no_grad()
def test_truncation_goes_from_one_image_to_all(small):
    latents = torch.randn(5, 6)
    mean = small(latents, truncation=0.0)
    torch.testing.assert_close(mean, mean[:1].expand_as(mean))
    assert torch.equal(small(latents, truncation=1.0), small(latents))
    spread = [float(small(latents, truncation=share).std(0).mean()) for share in (0.2, 0.5, 1.0)]
    assert spread == sorted(spread) and spread[0] > 0.01


@torch.no_grad()
def test_styles_by_hand(small):
    latent = torch.randn(6)
    values = latent.numpy() / np.linalg.norm(latent.numpy()) * math.sqrt(6)
    assert len(small.mapping) == 2
    for layer in small.mapping:
        layer.bias.normal_(std=100)
        assert 50 < float(layer.weight.std()) < 200, "stored a hundred times as large, it learns a hundredth as fast"
        values = 0.01 * (layer.weight.numpy() @ values / math.sqrt(len(values)) + layer.bias.numpy())
        values = math.sqrt(2) * np.where(values > 0, values, 0.2 * values)
    assert small.styles(latent[None])[0].numpy() == pytest.approx(values, abs=1e-5)


def test_mean_style_is_the_mean_of_styles(small):
    latents = torch.randn(50, 6)
    small.settle_mean_style(latents)
    assert small.mean_style.numpy() == pytest.approx(
        np.mean([small.styles(each[None])[0].detach().numpy() for each in latents], axis=0), abs=1e-5
    )


@torch.no_grad()
def test_bfloat16_draws_nearly_the_same(small):
    latents = torch.randn(8, 6)
    exact = small(latents)
    with torch.autocast("cpu", torch.bfloat16):
        rough = small(latents)
    assert rough.dtype == torch.float32
    assert float((rough - exact).abs().mean()) < 0.02 * float(exact.std())


def test_minibatch_deviation_by_hand():
    maps = torch.randn(8, 3, 2, 2)
    made = minibatch_deviation(maps)
    assert made.shape == (8, 1, 2, 2)
    values = maps.numpy()
    for number in range(8):
        # groups of four: every second image of eight
        group = values[number % 2 :: 2]
        assert made[number].numpy() == pytest.approx(np.full((1, 2, 2), group.std(0).mean()), abs=1e-4)


def test_a_repeating_generator_shows_in_the_minibatch_deviation():
    image = torch.randn(1, 3, 8, 8)
    assert float(minibatch_deviation(image.expand(4, -1, -1, -1)).max()) < 1e-3


def test_the_file_gives_the_same_images(small, tmp_path):
    path = tmp_path / "generator.safetensors"
    save_generator(small, path, {"seed": 3})
    again = load_generator(str(path))
    latents = torch.randn(3, 6)
    assert not again.training
    assert torch.equal(again(latents, truncation=0.7), small(latents, truncation=0.7))
    assert read_record(path).training == {"seed": 3} and read_record(path).shape == SMALL


def test_a_damaged_or_foreign_file_is_one_line(small, tmp_path):
    path = tmp_path / "generator.safetensors"
    with pytest.raises(StorageError, match="no such file"):
        load_generator(path)
    save_generator(small, path, {})
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="checksum"):
        load_generator(path)
    path.write_bytes(content[:-50])
    with pytest.raises(StorageError, match="damaged, cut off"):
        load_generator(path)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(StorageError, match="not one that `oodscope generate gan` wrote"):
        load_generator(path)


def test_a_generator_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "drawing.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(2, 3)\ndef no():\n    return 1"
    )
    monkeypatch.chdir(tmp_path)
    assert isinstance(load_generator("python:drawing:make"), torch.nn.Linear)
    with pytest.raises(ModelError, match="returned a int"):
        load_generator("python:drawing:no")
