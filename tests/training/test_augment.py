"""Every augmented image is one of the crops that a loop over images would allow, and all of them occur."""

from collections import Counter

import numpy as np
import pytest
import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode
from torchvision.transforms.autoaugment import _apply_op

from oodscope.base.errors import OodscopeError
from oodscope.training.augment.augmix import AugMix
from oodscope.training.augment.base import Chain
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.cutout import Cutout
from oodscope.training.augment.fractals import draw_fractals
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.augment.operations import OPERATIONS, SIGNED, apply_operations
from oodscope.training.augment.pixmix import PixMix, added, coefficients, multiplied
from oodscope.training.augment.randaugment import RandAugment
from oodscope.training.augment.reading import describe_augment, read_augment
from oodscope.training.registry import create_recipe

BILINEAR = torchvision.transforms.InterpolationMode.BILINEAR


def crop(image: np.ndarray, pad: int, top: int, left: int, mirrored: bool) -> bytes:
    """One image by hand: a black frame, a window, a mirror."""
    channels, height, width = image.shape
    framed = np.zeros((channels, height + 2 * pad, width + 2 * pad), image.dtype)
    framed[:, pad : pad + height, pad : pad + width] = image
    window = framed[:, top : top + height, left : left + width]
    return (window[:, :, ::-1] if mirrored else window).tobytes()


def places(images: torch.Tensor, augmented: torch.Tensor, pad: int) -> list[tuple[int, int, bool]]:
    """Where each augmented image was cut; an image that was not cut from its original is an error."""
    found = []
    for before, after in zip(images.numpy(), augmented.numpy()):
        options = {
            crop(before, pad, top, left, mirrored): (top, left, mirrored)
            for top in range(2 * pad + 1)
            for left in range(2 * pad + 1)
            for mirrored in (False, True)
        }
        found.append(options[after.tobytes()])
    return found


def noise(count: int) -> torch.Tensor:
    return torch.randint(256, (count, 3, 7, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_every_crop_and_mirror_occurs_equally_often():
    images = noise(3600)
    found = places(images, Augment(pad=1)(images, torch.Generator().manual_seed(1)), pad=1)
    counts = Counter(found)
    assert len(counts) == 18
    assert all(140 <= count <= 260 for count in counts.values()), counts  # 200 expected, deviation 14


def test_without_flip_letters_stay_letters():
    images = noise(300)
    found = places(images, Augment(pad=2, flip=False)(images, torch.Generator().manual_seed(1)), pad=2)
    assert not any(mirrored for _, _, mirrored in found)
    assert len({(top, left) for top, left, _ in found}) == 25


def test_without_pad_images_stay_in_place():
    images = noise(50)
    found = places(images, Augment(pad=0)(images, torch.Generator().manual_seed(1)), pad=0)
    assert {mirrored for _, _, mirrored in found} == {False, True}
    assert torch.equal(Augment(pad=0, flip=False)(images, torch.Generator()), images)


def test_the_generator_decides():
    images = noise(40)
    one, again, other = (Augment()(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)


def images(count: int, size: int = 32, seed: int = 0) -> torch.Tensor:
    """Smooth pictures with noise: every operation does something to them."""
    draws = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, 4, 4, generator=draws) * 200
    smooth = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return (smooth + 40 * torch.rand(count, 3, size, size, generator=draws)).to(torch.uint8)


class TestOperations:
    """Batched operations are torchvision's, image by image."""

    @pytest.mark.parametrize("name", OPERATIONS)
    @pytest.mark.parametrize("sign", [1, -1])
    def test_as_torchvision_does_it(self, name, sign):
        pixels = images(6)
        amount = {"shear_x": 0.14, "shear_y": 0.1, "translate_x": 6.767, "translate_y": 3.2, "rotate": 14.0}
        amount |= {"brightness": 0.42, "color": 0.42, "contrast": 0.42, "sharpness": 0.42}
        amount |= {"posterize": 6.0, "solarize": 136.0}
        number = OPERATIONS.index(name)
        strength = amount.get(name, 0.0) * (sign if number in SIGNED else 1)
        ours = apply_operations(pixels, torch.full((6,), number), torch.full((6,), strength))
        reference = {name: key for key, name in zip(TORCHVISION, OPERATIONS)}[name]
        theirs = torch.stack([_apply_op(image, reference, strength, BILINEAR, None) for image in pixels])
        apart = (ours.int() - theirs.int()).abs()
        # a level that lies on the edge of two falls to either side, as the last bit of a factor will have it
        assert apart.max() <= 1 and (apart > 0).float().mean() < 0.05, (apart.max(), (apart > 0).float().mean())
        if name not in ("identity",):
            assert not torch.equal(ours, pixels)

    def test_each_image_has_its_own(self):
        pixels = images(len(OPERATIONS))
        strength = torch.tensor([0, 0.1, 0.1, 3, 3, 10, 0.4, 0.4, 0.4, 0.4, 5, 128, 0, 0.0])
        together = apply_operations(pixels, torch.arange(len(OPERATIONS)), strength)
        alone = [
            apply_operations(pixels[[number]], torch.tensor([number]), strength[[number]])
            for number in range(len(OPERATIONS))
        ]
        assert torch.equal(together, torch.cat(alone))

    def test_flat_and_grey_images(self):
        flat = torch.full((len(OPERATIONS), 1, 8, 8), 77, dtype=torch.uint8)
        found = apply_operations(flat, torch.arange(len(OPERATIONS)), torch.zeros(len(OPERATIONS)))
        unchanged = [number for number, name in enumerate(OPERATIONS) if name not in ("posterize", "solarize")]
        assert torch.equal(found[unchanged], flat[unchanged])


TORCHVISION = ("Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
               "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize")  # fmt: skip


class TestRandAugment:
    def test_magnitudes_are_torchvisions(self):
        space = torchvision.transforms.RandAugment()._augmentation_space(31, (32, 32))
        assert tuple(space) == TORCHVISION
        for magnitude in (0, 9, 14, 30):
            operation = torch.arange(len(OPERATIONS))
            made = RandAugment(magnitude=magnitude)._strengths(images(1), operation, torch.ones(len(operation)).bool())
            expected = [float(values[magnitude]) if values.ndim else 0.0 for values, _ in space.values()]
            assert made.tolist() == pytest.approx(expected, abs=1e-4)
            signs = [signed for _, signed in space.values()]
            assert tuple(number for number, signed in enumerate(signs) if signed) == SIGNED

    def test_all_operations_occur(self):
        pixels = images(1).repeat(700, 1, 1, 1)
        found = RandAugment()(pixels, torch.Generator().manual_seed(0))
        kinds = {each.numpy().tobytes() for each in found}
        assert len(kinds) == 5 + 2 * len(SIGNED), "five that go one way, nine that go two ways"
        assert torch.equal(found, RandAugment()(pixels, torch.Generator().manual_seed(0)))


class TestAugMix:
    def test_magnitudes_are_torchvisions(self):
        space = torchvision.transforms.AugMix()._augmentation_space(10, (32, 32))
        assert set(space) | {"Identity"} == set(TORCHVISION)
        for step in range(10):
            operation = torch.arange(len(OPERATIONS))
            made = AugMix()._strengths(images(1), operation, torch.full((14,), step), torch.ones(14).bool())
            for number, name in enumerate(TORCHVISION):
                values = space[name][0] if name in space else torch.tensor(0.0)
                assert made[number].item() == pytest.approx(float(values[step]) if values.ndim else 0.0, abs=1e-4)

    def test_as_strong_as_torchvisions_on_average(self):
        pixels = images(400)
        ours = (AugMix()(pixels, torch.Generator().manual_seed(0)).float() - pixels.float()).abs().mean()
        torch.manual_seed(0)
        reference = torchvision.transforms.AugMix(severity=3)
        theirs = torch.stack([reference(image) for image in pixels])
        assert float(ours) == pytest.approx(float((theirs.float() - pixels.float()).abs().mean()), rel=0.1)

    def test_severity_one_does_next_to_nothing(self):
        pixels = images(300)
        weak, strong = (AugMix(severity=s)(pixels, torch.Generator().manual_seed(0)).float() for s in (1, 3))
        assert (weak - pixels.float()).abs().mean() < 0.8 * (strong - pixels.float()).abs().mean()


class TestOneByOne:
    """All images of a batch at once are what each is by itself, from the same random numbers."""

    def test_augmix(self):
        pixels, augment = images(12), AugMix()
        found = augment(pixels, torch.Generator().manual_seed(5))
        drawn = torch.Generator().manual_seed(5)

        def uniform(*shape):
            return torch.rand(*shape, generator=drawn)

        depth, places = uniform(3, 12), [[uniform(3, 12) for _ in range(3)] for _ in range(3)]
        waits, share = -torch.log1p(-uniform(3, 12)), uniform(12)
        for row, image in enumerate(pixels):
            mixture = torch.zeros(image.shape)
            for chain in range(3):
                varied = image[None]
                for place in range(int(3 * depth[chain, row]) + 1):
                    kind, step, sign = (each[chain, row] for each in places[place])
                    operation = torch.tensor([1 + int(13 * kind)])
                    amount = augment._strengths(pixels, operation, torch.tensor([int(3 * step)]), (sign < 0.5)[None])
                    varied = apply_operations(varied, operation, amount)
                mixture += waits[chain, row] / waits[:, row].sum() * varied[0]
            expected = share[row] * image + (1 - share[row]) * mixture
            assert (found[row].float() - expected).abs().max() < 1.01, "the rest of a level is cut off"

    def test_pixmix(self):
        pixels, augment = images(16), PixMix(pictures=20)
        found = augment(pixels, torch.Generator().manual_seed(5))
        drawn = torch.Generator().manual_seed(5)

        def uniform(*shape):
            return torch.rand(*shape, generator=drawn)

        windows, begins, copy, rounds = uniform(3, 16), uniform(16), uniform(3, 16), uniform(16)
        later = [(uniform(16), uniform(3, 16), uniform(2, 16), uniform(16), uniform(16)) for _ in range(4)]
        other = augment._mixing(pixels, windows)
        for row, image in enumerate(pixels):

            def varied(chance, row=row):
                return augment._varied(pixels[[row]], chance[:, [row]])[0]

            mixed = (image if begins[row] < 0.5 else varied(copy)) / 255
            for own, chance, numbers, averaging, adding in later[: int(5 * rounds[row])]:
                y = (varied(chance) if own[row] < 0.5 else other[row]) / 255
                a, b = coefficients(numbers[:, row], averaging[row] < 0.5, 3.0)
                mixed = (added if adding[row] < 0.5 else multiplied)(mixed, y, a, b).clamp(0, 1)
            assert (found[row].float() - 255 * mixed).abs().max() < 0.51


class Counting(TorchDispatchMode):
    """Counts operations that would be kernels of a GPU; views are none."""

    def __init__(self):
        super().__init__()
        self.launches = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.launches += not (func.is_view or func.overloadpacket.__name__.startswith(("empty", "split")))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("augment", "most"), [(RandAugment(), 105), (AugMix(), 320), (PixMix(pictures=5), 235), (Augment(), 25)]
)
def test_a_batch_takes_few_launches(augment, most):
    """Within a recorded step each launch costs more than what it computes: once it was 186, 652 and 1236 of them."""
    pixels = images(8)
    augment(pixels, torch.Generator().manual_seed(0))
    with Counting() as counted:
        augment(pixels, torch.Generator().manual_seed(0))
    assert counted.launches <= most, counted.launches


class TestPixMix:
    def test_adding_and_multiplying(self):
        x, y, a, b = torch.tensor([0.2, 0.8]), torch.tensor([0.6, 0.1]), torch.tensor(0.7), torch.tensor(0.4)
        assert added(x, y, a, b).tolist() == pytest.approx([0.33, 0.55], abs=1e-6)
        assert multiplied(x, y, a, b).tolist() == pytest.approx([0.283194, 0.364977], abs=1e-6)

    def test_coefficients_have_the_law_of_beta(self):
        chance = torch.rand(2, 40_000, generator=torch.Generator().manual_seed(0))
        for averaging, means in ((True, (0.75, 0.25)), (False, (1.25, -0.25))):
            found = coefficients(chance, torch.full((40_000,), averaging), 3.0)
            assert [each.mean().item() for each in found] == pytest.approx(means, abs=0.005)
            assert [each.std().item() for each in found] == pytest.approx([0.19365, 0.19365], abs=0.005)

    def test_without_rounds_half_of_the_images_are_as_they_were(self):
        pixels = images(400)
        found = PixMix(rounds=0, pictures=3)(pixels, torch.Generator().manual_seed(0))
        same = (found == pixels).flatten(1).all(1).float().mean().item()
        assert 0.45 < same < 0.62, "and a few operations change nothing"

    def test_rounds_mix_and_the_generator_decides(self):
        pixels = images(300)
        one, again, other = (PixMix(pictures=20)(pixels, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
        assert torch.equal(one, again) and not torch.equal(one, other)
        assert one.dtype == torch.uint8 and one.shape == pixels.shape
        same = (one == pixels).flatten(1).all(1).float().mean().item()
        assert 0.05 < same < 0.2, "one in ten draws no round and no copy"
        assert 20 < (one.float() - pixels.float()).abs().mean() < 90

    def test_mixing_pictures_are_windows_of_fractals(self):
        recipe, pixels = PixMix(pictures=5), torch.zeros(50, 3, 8, 8, dtype=torch.uint8)
        every = draw_fractals(5, 12, 0, "cpu")
        windows = {
            every[picture, :, top : top + 8, left : left + 8].numpy().tobytes()
            for picture in range(5) for top in range(5) for left in range(5)
        }  # fmt: skip
        found = recipe._mixing(pixels, torch.rand(3, 50, generator=torch.Generator().manual_seed(0)))
        assert {each.contiguous().numpy().tobytes() for each in found} <= windows

    def test_fractals_are_drawn_from_their_seed(self):
        one, again, other = (draw_fractals.__wrapped__(12, 36, seed, "cpu") for seed in (0, 0, 1))
        assert torch.equal(one, again) and not torch.equal(one, other)
        assert (one.float().flatten(1).std(dim=1) > 10).all(), "each shows something"
        assert len({each.numpy().tobytes() for each in one}) == 12


class TestCutout:
    @pytest.mark.parametrize(("size", "share"), [(16, 0.191406), (8, 0.054932)])
    def test_the_mean_share_is_blank(self, size, share):
        shown = torch.ones(20_000, 1, 32, 32)
        found = Cutout(size=size).after_scaling(shown, torch.Generator().manual_seed(0))
        assert 1 - found.mean().item() == pytest.approx(share, abs=0.002)
        assert set(found.unique().tolist()) == {0.0, 1.0}

    def test_one_rectangle_of_all_channels(self):
        found = Cutout(size=6).after_scaling(torch.ones(200, 3, 12, 12), torch.Generator().manual_seed(0))
        for image in found:
            blank = image[0] == 0
            assert all(torch.equal(channel == 0, blank) for channel in image)
            rows, columns = blank.any(1).sum(), blank.any(0).sum()
            assert blank.sum() == rows * columns and 3 <= rows <= 6 and 3 <= columns <= 6

    def test_bytes_are_left_alone(self):
        assert torch.equal(Cutout()(images(3), torch.Generator()), images(3))


class TestReading:
    def test_names_mappings_and_lists(self):
        assert read_augment("cutout") == Cutout()
        assert read_augment({"pad": 2}) == Augment(pad=2), "no kind is crop and mirror"
        chain = read_augment(["randaugment", "crop", {"kind": "cutout", "size": 8}])
        assert chain == Chain(steps=(RandAugment(), Augment(), Cutout(size=8)))
        assert read_augment(describe_augment(chain)) == chain

    def test_a_recipe_carries_any_of_them(self):
        recipe = create_recipe("logitnorm", augment=["crop", {"kind": "cutout", "size": 8}])
        assert recipe.augment == Chain(steps=(Augment(), Cutout(size=8)))
        assert recipe.describe()["augment"] == [{"pad": 4, "flip": True}, {"kind": "cutout", "size": 8}]
        shown = recipe.after_scaling(torch.ones(50, 3, 32, 32), torch.Generator().manual_seed(0), "train")
        assert 0 < (shown == 0).float().mean() < 0.1

    @pytest.mark.parametrize(
        ("declared", "message"),
        [
            ("cutut", "unknown augmentation 'cutut'. Did you mean 'cutout'"),
            ({"kind": "cutout", "sise": 3}, "augmentation 'cutout': unknown key 'sise'. Did you mean 'size'"),
            (7, "an augmentation is a name"),
        ],
    )
    def test_mistakes(self, declared, message):
        with pytest.raises(OodscopeError, match=message):
            read_augment(declared)
        with pytest.raises(OodscopeError, match=f"recipe 'mixup': augment: .*{message}"):
            create_recipe("mixup", augment=declared)


def test_jitter_leaves_grey_images_grey_and_is_off_at_zero():
    pixels = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
    off = ColourJitter(strength=0, hue=0, grey=0)
    assert torch.equal(off(pixels, torch.Generator().manual_seed(0)), pixels)
    grey = ColourJitter(grey=1)(pixels, torch.Generator().manual_seed(0))
    assert (grey == grey[:, :1]).all()
    assert torch.equal(ColourJitter()(pixels[:, :1], torch.Generator()), pixels[:, :1]), "one channel has no colours"
