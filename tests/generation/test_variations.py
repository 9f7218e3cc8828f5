"""What every variation promises: identity, range, rows by themselves, no question to the device, gradients."""

import json

import pytest
import torch

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.data.addressed import content_keys
from oodscope.data.corruptions.batch import STEADY, corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.generation.variations.affine import Affine
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.blend import Blend
from oodscope.generation.variations.color import Color
from oodscope.generation.variations.composition import Composition
from oodscope.generation.variations.corruption import Corruption
from oodscope.generation.variations.domain import Box, Sphere
from oodscope.generation.variations.linf import LInf
from oodscope.generation.variations.registry import VARIATIONS, create_variation

NAMES = ["affine", "color", "affine+color", "linf", "corruption", "corruption:impulse_noise", "blend", "blend+affine"]


def noise(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def pictures(count=12, shape=(3, 16, 16)):
    """As from files: one of 256 levels everywhere; the first black, the second white."""
    images = (noise(count, *shape, seed=5) * 255).round() / 255
    images[0], images[1] = 0, 1
    return images


def made(name, shape=(3, 16, 16)):
    return create_variation(name, image_shape=shape, partners=noise(5, *shape, seed=3))


def drawn(variation, count=12, seed=1):
    return variation.domain.draw(count, torch.Generator().manual_seed(seed))


def at_identity(variation, count, dtype=torch.float32):
    return torch.tensor([variation.identity], dtype=dtype).expand(count, -1)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 12, 20)])
@pytest.mark.parametrize("name", NAMES)
def test_the_identity_returns_the_image(name, shape):
    variation, images = made(name, shape), pictures(6, shape)
    varied = variation(at_identity(variation, 6), images)
    exact = "color" not in name
    assert torch.equal(varied, images) if exact else (varied - images).abs().max() < 1e-6
    nearest = Affine(shape, interpolation="nearest")
    assert torch.equal(nearest(at_identity(nearest, 6), images), images)


@pytest.mark.parametrize("name", NAMES)
def test_pixels_stay_pixels_in_every_type(name):
    variation, images = made(name), pictures()
    points = drawn(variation)
    varied = variation(points, images)
    assert varied.shape == images.shape
    assert varied.dtype == torch.float32
    assert (varied - images).abs().amax(dim=(1, 2, 3)).gt(1e-4).sum() >= 10
    for other in (varied, variation((points > 0.5).float(), images)):
        assert 0 <= other.min() <= other.max() <= 1
    assert torch.equal(variation(points, images.contiguous(memory_format=torch.channels_last)), varied)
    half = variation(points, images.bfloat16())
    assert half.dtype == torch.bfloat16
    # a corruption would differ at once if bfloat16 changed the address of its grain; pixelate rounds levels twice
    assert (half.float() - varied).abs().mean() < 0.004
    assert variation(points.double(), images.double()).dtype == torch.float64


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_see_each_other(name):
    variation, images = made(name), pictures()
    points = drawn(variation)
    whole = variation(points, images)
    alone = torch.cat([variation(points[row : row + 1], images[row : row + 1]) for row in range(12)])
    assert (whole - alone).abs().max() < 1e-6
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert (variation(points[order], images[order]) - whole[order]).abs().max() < 1e-6


@pytest.mark.parametrize("name", [*NAMES, *(f"corruption:{each}" for each in STEADY)])
def test_nothing_is_asked_of_the_device_nor_sent_to_it(name, monkeypatch):
    """Tensors without content have no answers; and whatever makes a tensor of Python's numbers is taken away."""
    variation = made(name).to("meta")
    points = torch.empty(4, variation.domain.dimension, device="meta")
    images = torch.empty(4, 3, 16, 16, device="meta")

    def refuse(*_, **__):
        raise AssertionError("numbers are copied to the device in a step")

    for owner, maker in ((torch, "tensor"), (torch, "as_tensor"), (torch, "from_numpy"), (torch.Tensor, "new_tensor")):
        monkeypatch.setattr(owner, maker, refuse)
    varied = variation(points, images)
    assert varied.device.type == "meta"
    assert varied.shape == images.shape


@pytest.mark.slow
@pytest.mark.parametrize("name", ["affine+color", "linf", "blend", "corruption:impulse_noise"])
def test_one_graph_without_breaks(name):
    variation, images = made(name), pictures()
    points = drawn(variation)
    torch.compiler.reset()
    compiled = torch.compile(lambda u, x: variation(u, x), fullgraph=True, backend="eager", dynamic=False)
    assert (compiled(points, images) - variation(points, images)).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "corruption" not in name])
def test_gradients_are_those_of_differences(name):
    variation = made(name, (3, 4, 4))
    images = 0.1 + 0.8 * noise(3, 3, 4, 4, seed=9).double()
    assert variation.differentiable
    points = (0.2 + 0.6 * drawn(variation, 3)).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda u: variation(u, images), points)


def test_only_what_jumps_is_not_differentiable():
    assert not made("corruption").differentiable
    assert not made("affine+corruption:fog").differentiable
    # a partner is chosen, not approached
    points = drawn(made("blend")).requires_grad_()
    made("blend")(points, pictures()).sum().backward()
    assert points.grad[:, 0].all()
    assert not points.grad[:, 1].any()


@pytest.mark.parametrize("name", NAMES)
def test_a_variation_describes_itself(name):
    variation, other = made(name), made(name)
    assert json.loads(json.dumps(variation.describe())) == other.describe()
    assert variation.describe()["name"] == name == variation.name
    assert variation.conditional
    assert isinstance(variation.domain, Box)
    assert len(variation.identity) == variation.domain.dimension
    named = variation.natural(drawn(variation))
    assert named.shape == (12, len(variation.parameters))
    assert variation.to("cpu").describe() == variation.describe()


def test_a_composition_acts_from_right_to_left():
    variation, images = made("affine+color"), pictures()
    assert variation.domain.dimension == 9
    assert variation.identity == (*Color().identity, *Affine().identity)
    assert variation.parameters == (*Color().parameters, *Affine((3, 16, 16)).parameters)
    points = drawn(variation)
    expected = Affine((3, 16, 16))(points[:, 4:], Color()(points[:, :4], images))
    assert torch.equal(variation(points, images), expected)
    assert torch.equal(variation.natural(points)[:, 4:], Affine((3, 16, 16)).natural(points[:, 4:]))
    # black from outside stays black, which contrast would have made grey
    points = at_identity(variation, 12).clone()
    points[:, 1], points[:, 5] = 0, 1
    assert not variation(points, images)[..., :5].any()
    assert made("color+affine")(points.roll(5, 1), images)[2:, ..., :5].any()


def test_linf_is_a_ball():
    variation, images = LInf((3, 8, 8), epsilon=0.25), pictures(4, (3, 8, 8))
    points = (drawn(variation, 4) > 0.5).float()
    expected = (images + 0.25 * torch.where(points.view(images.shape) > 0.5, 1.0, -1.0)).clamp(0, 1)
    assert torch.equal(variation(points, images), expected)
    assert LInf().domain.dimension == 3072
    assert LInf().epsilon == 0.01


@pytest.mark.parametrize("name", STEADY)
def test_a_corruption_is_that_of_corrupted_sets(name):
    images, points = pictures(8), torch.tensor([[0.0], [0.1], [0.2], [0.33], [0.5], [0.77], [0.9], [1.0]])
    varied = Corruption((name,), seed=3)(points, images)
    keys = content_keys(images).numpy()
    expected = corrupt_batch(images, name, 5 * points[:, 0].double().numpy(), seed=3, keys=keys)
    # pixelate counts cells, and a severity in float32 may fall on the other side of a count
    assert (varied - expected).abs().max() < 1e-6


def test_the_type_coordinate_chooses_the_type():
    types = ("brightness", "contrast", "gaussian_blur")
    variation, images = Corruption(types), pictures(4)
    for row, coordinate in enumerate((0.0, 0.4, 0.9, 1.0)):
        points = torch.tensor([[coordinate, 0.6]]).expand(4, -1)
        name = types[min(row, 2)]
        assert torch.equal(variation(points, images), create_variation(f"corruption:{name}")(points[:, 1:], images))
        assert variation.natural(points)[0].tolist() == pytest.approx([min(row, 2), 3.0])
    families = {CORRUPTIONS[each].family for each in Corruption().types}
    assert families == {"noise", "blur", "weather", "digital"}


def test_grain_belongs_to_the_image_and_the_seed():
    images = pictures(4)
    points = torch.ones(4, 1)
    grain = Corruption(("gaussian_noise",))(points, images) - images
    same = Corruption(("gaussian_noise",))(points[:1], images[2:3]) - images[2:3]
    assert torch.equal(same[0], grain[2])
    assert not torch.allclose(grain[2], grain[3], atol=0.01)
    other = Corruption(("gaussian_noise",), seed=1)(points, images) - images
    assert not torch.allclose(grain[2], other[2], atol=0.01)


def test_all_levels_keep_their_address_in_short_floats():
    levels = torch.arange(256).view(256, 1, 1, 1).expand(-1, 1, 8, 8) / 255
    keys = content_keys(levels)
    assert len(keys.unique()) == 256
    assert torch.equal(content_keys(levels.bfloat16()), keys)
    assert torch.equal(content_keys(levels.half()), keys)
    images = pictures(4)[2:]
    assert (content_keys(images) != content_keys(images.flip(3))).all()


def test_blend_mixes_in_the_chosen_partner():
    partners, images = noise(4, 3, 8, 8, seed=3), pictures(5, (3, 8, 8))
    variation = Blend(partners)
    points = torch.tensor([[1.0, 0.0], [0.5, 0.3], [0.1, 0.6], [1.0, 0.99], [1.0, 1.0]])
    weights, chosen = [0.3, 0.15, 0.03, 0.3, 0.3], [0, 1, 2, 3, 3]
    for row, (weight, partner) in enumerate(zip(weights, chosen)):
        expected = (1 - weight) * images[row] + weight * partners[partner]
        assert (variation(points, images)[row] - expected).abs().max() < 1e-6
    assert variation.natural(points)[:, 1].tolist() == chosen
    assert Blend(partners, heaviest=0.5).describe() != variation.describe()
    assert Blend(partners.flip(0)).describe() != variation.describe()


def test_every_listed_variation_can_be_made():
    for name in VARIATIONS:
        cls = VARIATIONS.get(name)
        assert issubclass(cls, Variation)
        if cls.conditional:
            assert isinstance(made(name), cls)
    assert {"affine", "blend", "color", "corruption", "linf"} <= set(VARIATIONS.names())
    assert create_variation("linf", image_shape=(1, 8, 8), epsilon=0.1).describe()["epsilon"] == 0.1
    assert create_variation("corruption", types=("fog", "contrast")).domain.dimension == 2
    assert create_variation("corruption:fog").domain.dimension == 1


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: create_variation("afine"), UnknownNameError, "unknown variation 'afine'. Did you mean 'affine'"),
        (lambda: create_variation("affine+colour"), UnknownNameError, "Did you mean 'color'"),
        (lambda: create_variation("corruption:gausian_noise"), UnknownNameError, "'gaussian_noise'"),
        (lambda: create_variation("corruption:snow"), OodscopeError, "would stop the device"),
        (lambda: create_variation("affine:fog"), OodscopeError, "affine has no types"),
        (lambda: create_variation("linf", epsilom=0.1), OodscopeError, "Did you mean 'epsilon'"),
        (lambda: create_variation("affine+linf", epsilon=0.1), OodscopeError, "use Composition"),
        (lambda: create_variation("blend"), OodscopeError, "blend needs partners"),
        (lambda: LInf(epsilon=0), OodscopeError, "above 0"),
        (lambda: Blend(noise(2, 3, 8, 8), heaviest=1.5), OodscopeError, "up to 1"),
        (lambda: Blend(noise(2, 3, 8, 8) * 255), DataError, "must lie in [0, 1]"),
        (lambda: Blend(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)), DataError, "floating point"),
        (lambda: Blend(noise(3, 8, 8)), DataError, "[P, C, H, W]"),
        (lambda: made("blend")(torch.zeros(1, 2), noise(1, 3, 8, 8)), DataError, "the images [3, 8, 8]"),
        (lambda: Affine()(torch.zeros(1, 5), noise(1, 3, 8, 8)), DataError, "not [3, 8, 8]"),
        (lambda: Affine(interpolation="nearst"), UnknownNameError, "Did you mean 'nearest'"),
        (lambda: Corruption(()), OodscopeError, "at least one type"),
        (lambda: Composition(()), OodscopeError, "at least one variation"),
        (lambda: Composition((Color(), OnASphere())), OodscopeError, "circle cannot be part of a composition"),
    ],
)
def test_errors_for_people(make, error, says):
    with pytest.raises(error) as caught:
        make()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


class OnASphere(Color):
    name = "circle"

    @property
    def domain(self):
        return Sphere(4)
