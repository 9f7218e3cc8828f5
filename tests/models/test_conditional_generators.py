"""DCGAN, BigGAN-style and pix2pix networks: shapes, slow references, and their file."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from oodscope.models.generators.biggan import (
    BigGanGenerator,
    BigGanShape,
    ConditionalNorm,
    DownBlock,
    ProjectionDiscriminator,
    UpBlock,
)
from oodscope.models.generators.dcgan import DcganDiscriminator, DcganGenerator, DcganShape
from oodscope.models.generators.pix2pix import PatchDiscriminator, UnetGenerator, UnetShape, dropped
from oodscope.models.generators.saved import load_generator, read_record, save_generator
from oodscope.models.generators.spectral import (
    SelfAttention,
    SpectralConv,
    SpectralEmbedding,
    SpectralLinear,
    SpectralWeight,
)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def shaken(module: nn.Module) -> nn.Module:
    """Every parameter away from its first value, and the singular vectors where power iterations end."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
        for layer in module.modules():
            if isinstance(layer, SpectralWeight):
                layer.left.copy_(torch.linalg.svd(layer.weight.flatten(1))[0][:, 0])
    return module


def slow_weight(layer: SpectralWeight) -> np.ndarray:
    """The weight over its largest singular value, by a decomposition."""
    weight = layer.weight.detach().double().numpy()
    return weight / np.linalg.svd(weight.reshape(len(weight), -1), compute_uv=False)[0]


@pytest.mark.parametrize(("size", "latent"), [(28, 6), (32, 8), (64, 10)])
def test_sizes(size, latent):
    classes = torch.tensor([0, 1, 2])
    biggan = BigGanGenerator(BigGanShape(size=size, classes=3, latent=latent, width=4, embedding=5))
    drawn = biggan(torch.randn(3, latent), classes)
    assert drawn.shape == (3, 3, size, size) and float(drawn.detach().abs().max()) <= 1
    assert ProjectionDiscriminator(size, 3, 3, 4)(drawn, classes).shape == (3,)
    dcgan = DcganGenerator(DcganShape(size=size, latent=7, width=4))
    drawn = dcgan(torch.randn(3, 7))
    assert drawn.shape == (3, 1, size, size) and float(drawn.detach().abs().max()) <= 1
    assert DcganDiscriminator(size, 1, 4)(drawn).shape == (3,)
    unet, images = UnetGenerator(UnetShape(size=size, width=4)), torch.rand(2, 3, size, size) * 2 - 1
    redrawn = unet(images, torch.Generator())
    assert redrawn.shape == images.shape and float(redrawn.detach().abs().max()) <= 1


def test_latents_are_shared_out_in_full():
    with pytest.raises(ValidationError, match="multiple of 4, the levels of 32 px, not 82"):
        BigGanShape(latent=82)
    generator = BigGanGenerator(BigGanShape(size=16, classes=2, latent=6, width=4)).eval()
    shaken(generator).eval()
    latents, classes = torch.randn(1, 6).repeat(7, 1), torch.zeros(7, dtype=torch.long)
    latents[torch.arange(6), torch.arange(6)] += 1
    with torch.no_grad():
        drawn = generator(latents, classes)
        assert min(float((drawn[each] - drawn[6]).abs().max()) for each in range(6)) > 1e-3, "every coordinate counts"
        assert float((generator(latents, classes + 1) - drawn).abs().max()) > 1e-2, "and so does the class"


@pytest.mark.parametrize("layer", [SpectralLinear(7, 5), SpectralConv(3, 6), SpectralEmbedding(4, 9)])
def test_spectral_norm_is_one(layer):
    first = layer.normalised().detach().flatten(1)
    assert np.linalg.svd(first.numpy(), compute_uv=False)[0] == pytest.approx(1, abs=1e-5), "orthogonal from the start"
    nn.init.normal_(layer.weight)
    for _ in range(500):
        layer.normalised()
    np.testing.assert_allclose(layer.normalised().detach().numpy(), slow_weight(layer), rtol=0, atol=1e-5)


def test_a_layer_stretches_nothing_by_more_than_one():
    layer, values = shaken(SpectralLinear(20, 20)).eval(), torch.randn(500, 20)
    stretched = (layer(values) - layer.bias).norm(dim=1) / values.norm(dim=1)
    assert float(stretched.detach().max()) <= 1 + 1e-5


def test_power_iteration_moves_in_training_only_and_the_scale_has_no_gradient():
    layer = SpectralLinear(6, 6)
    nn.init.normal_(layer.weight)
    before = layer.left.clone()
    layer.eval().normalised()
    assert torch.equal(layer.left, before)
    layer.train().normalised()
    assert not torch.equal(layer.left, before)
    layer.weight.data *= 3
    values = torch.randn(4, 6)
    (layer(values) * torch.randn(4, 6)).sum().backward()
    # the output does not change with the length of the weight, so the gradient is perpendicular to it
    assert float((layer.weight.grad * layer.weight.detach()).sum()) == pytest.approx(0, abs=1e-5)


def test_spectral_norm_is_taken_in_full_precision():
    layer = shaken(SpectralConv(16, 16))
    with torch.autocast("cpu", torch.bfloat16):
        weight = layer.normalised()
    assert weight.dtype == torch.float32
    np.testing.assert_allclose(weight.detach().numpy(), slow_weight(layer), rtol=0, atol=1e-5)


def test_conditional_norm_by_hand():
    norm = shaken(ConditionalNorm(3, 4))
    maps, condition = torch.randn(5, 3, 2, 2) * 3 + 1, torch.randn(5, 4)
    made = norm(maps, condition).detach().numpy()
    values, given = maps.double().numpy(), condition.double().numpy()
    gain, bias = given @ slow_weight(norm.gain).T, given @ slow_weight(norm.bias).T
    for image, channel in np.ndindex(5, 3):
        plane = values[:, channel]
        normed = (values[image, channel] - plane.mean()) / np.sqrt(plane.var() + 1e-5)
        expected = (1 + gain[image, channel]) * normed + bias[image, channel]
        assert made[image, channel] == pytest.approx(expected, abs=1e-4)


def test_attention_by_hand():
    layer, maps = shaken(SelfAttention(8)), torch.randn(2, 8, 4, 4)
    made = layer(maps).detach().numpy()
    weights = {name: slow_weight(getattr(layer, name))[:, :, 0, 0] for name in ("query", "key", "value", "out")}
    biases = {name: getattr(layer, name).bias.detach().numpy() for name in weights}
    for image in range(2):
        flat = maps[image].double().numpy().reshape(8, 16)
        seen = {name: weights[name] @ flat + biases[name][:, None] for name in ("query", "key", "value")}
        small = {name: seen[name].reshape(-1, 2, 2, 2, 2).max((2, 4)).reshape(-1, 4) for name in ("key", "value")}
        expected = flat.copy()
        for place in range(16):
            attention = np.exp(seen["query"][:, place] @ small["key"])
            told = small["value"] @ (attention / attention.sum())
            expected[:, place] += layer.strength.item() * (weights["out"] @ told + biases["out"])
        np.testing.assert_allclose(made[image].reshape(8, 16), expected, rtol=0, atol=1e-4)


def test_attention_begins_as_the_identity():
    maps = torch.randn(2, 8, 4, 4)
    assert torch.equal(SelfAttention(8)(maps), maps)


def test_skips_that_are_pooled_early_are_those_pooled_late():
    up, maps, condition = shaken(UpBlock(3, 4, 2)), torch.randn(2, 3, 4, 4), torch.randn(2, 2)
    doubled = nn.functional.interpolate(maps, scale_factor=2)
    inner = up.second_norm(up.first(doubled_of(up.first_norm(maps, condition).relu())), condition).relu()
    torch.testing.assert_close(up(maps, condition), up.second(inner) + up.skip(doubled), rtol=1e-4, atol=1e-4)
    down, maps = shaken(DownBlock(3, 4)).eval(), torch.randn(2, 3, 4, 4)
    late = down.second(down.first(maps.relu()).relu()) + down.skip(maps)
    torch.testing.assert_close(down(maps), nn.functional.avg_pool2d(late, 2))


def doubled_of(maps):
    return maps.repeat_interleave(2, 2).repeat_interleave(2, 3)


def test_projection_by_hand():
    model, images, classes = shaken(ProjectionDiscriminator(8, 3, 4, 2)), torch.rand(6, 3, 8, 8), torch.arange(6) % 4
    logits = model(images, classes).detach().numpy()
    features = model.features(images).detach().double().numpy()
    assert features.shape == (6, 4) and features.min() >= 0
    linear, classes_known = slow_weight(model.logit)[0], slow_weight(model.embedding)
    for row in range(6):
        expected = features[row] @ linear + model.logit.bias.item() + features[row] @ classes_known[row % 4]
        assert logits[row] == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_features_are_summed_over_places():
    model = shaken(ProjectionDiscriminator(16, 3, 4, 2)).eval()
    images, seen = torch.rand(2, 3, 16, 16), []
    model.blocks[-1].register_forward_hook(lambda layer, given, made: seen.append(made))
    features = model.features(images)
    assert seen[0].shape == (2, 8, 4, 4), "from 16 px down to 4"
    torch.testing.assert_close(features, seen[0].clamp(min=0).sum((2, 3)))


def test_each_image_is_judged_by_itself():
    images, classes = torch.rand(4, 1, 16, 16), torch.arange(4)
    for model in (ProjectionDiscriminator(16, 1, 4, 4), DcganDiscriminator(16, 1, 4)):
        model.eval()
        torch.testing.assert_close(model(images[:1], classes[:1]), model(images, classes)[:1])


def test_patches_of_16_pixels_14_by_14_of_them_at_32():
    model = PatchDiscriminator(3, 4).eval()
    given, drawn = torch.randn(1, 3, 32, 32), torch.randn(1, 3, 32, 32, requires_grad=True)
    logits = model(given, drawn)
    assert logits.shape == (1, 14, 14)
    logits[0, 7, 7].backward()
    rows, columns = drawn.grad.abs().sum((0, 1)).nonzero().T
    assert int(rows.max() - rows.min()) + 1 == 16 == int(columns.max() - columns.min()) + 1
    swapped = model(drawn.detach(), given)
    assert float((swapped - logits.detach()).abs().max()) > 1e-3, "which image was given matters"


def test_dropout_zeroes_half_and_doubles_the_rest():
    made = dropped(torch.ones(100, 4, 8, 8), torch.Generator().manual_seed(0))
    assert set(made.unique().tolist()) == {0.0, 2.0} and float(made.mean()) == pytest.approx(1, abs=0.02)


def test_noise_of_the_unet_is_seeded_and_stays_on_when_drawing():
    unet, images = UnetGenerator(UnetShape(size=32, width=4)).eval(), torch.rand(2, 3, 32, 32)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (unet(images, torch.Generator().manual_seed(seed)).detach() for seed in (1, 1, 2))
    assert torch.equal(first, again) and float((first - other).abs().max()) > 1e-4
    assert torch.equal(torch.get_rng_state(), before), "nothing comes from torch's global random numbers"


@pytest.mark.parametrize(("size", "masks"), [(16, 3), (28, 3), (32, 3), (64, 3), (8, 2)])
def test_the_three_innermost_blocks_are_noisy(size, masks, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "oodscope.models.generators.pix2pix.dropped", lambda maps, draws: seen.append(maps.shape[2]) or maps
    )
    UnetGenerator(UnetShape(size=size, width=2))(torch.zeros(2, 3, size, size), torch.Generator())
    assert len(seen) == masks and seen == [seen[0] * 2**level for level in range(masks)]


@pytest.mark.parametrize("level", range(4))
def test_details_pass_the_unet_at_every_level(level):
    """With what comes from below cut off at one level, the image still passes beside it."""
    unet = shaken(UnetGenerator(UnetShape(size=32, width=2))).eval()
    below = unet.middle if level == 0 else unet.ups[level - 1]
    below.register_forward_hook(lambda layer, given, made: torch.zeros_like(made))
    images = torch.rand(2, 3, 32, 32, requires_grad=True)
    unet(images, torch.Generator().manual_seed(0)).sum().backward()
    assert float(images.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    "generator",
    [
        BigGanGenerator(BigGanShape(size=8, classes=2, latent=4, width=2, embedding=3)),
        DcganGenerator(DcganShape(size=8, latent=4, width=2)),
        UnetGenerator(UnetShape(size=8, width=2)),
    ],
    ids=["biggan", "dcgan", "unet"],
)
def test_one_file_format_for_all(generator, tmp_path):
    path = tmp_path / "generator.safetensors"
    shaken(generator).eval()
    save_generator(generator, path, {"seed": 3})
    again = load_generator(path)
    assert type(again) is type(generator) and not again.training
    assert read_record(path).shape == generator.shape and read_record(path).training == {"seed": 3}
    if isinstance(generator, UnetGenerator):
        images = torch.rand(2, 3, 8, 8)
        given = [(images, torch.Generator().manual_seed(0)) for _ in range(2)]
    else:
        given = [(torch.ones(2, 4), torch.tensor([0, 1]))] * 2
    assert torch.equal(again(*given[0]), generator(*given[1]))


@pytest.mark.parametrize("network", ["biggan", "dcgan"])
def test_bfloat16_draws_nearly_the_same(network):
    shape = BigGanShape(size=16, classes=2, latent=6, width=8) if network == "biggan" else DcganShape(size=16, latent=6)
    generator = (BigGanGenerator if network == "biggan" else DcganGenerator)(shape)
    latents, classes = torch.randn(16, 6), torch.zeros(16, dtype=torch.long)
    with torch.no_grad():
        exact = generator(latents, classes)
        with torch.autocast("cpu", torch.bfloat16):
            rough = generator(latents, classes)
    assert rough.dtype == torch.float32
    assert float((rough - exact).abs().mean()) < 0.05 * float(exact.std())
