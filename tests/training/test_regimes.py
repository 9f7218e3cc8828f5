"""Regimes of the human-centric study: AutoAugment, noise, adversarial noise, style, distillation."""

import numpy as np
import pytest
import torch
from torchvision.transforms import AutoAugment as Theirs
from torchvision.transforms import AutoAugmentPolicy, InterpolationMode
from torchvision.transforms.autoaugment import _apply_op

from oodscope.base.errors import OodscopeError, UsageError
from oodscope.training.augment.autoaugment import BINS, POLICY, AutoAugment
from oodscope.training.augment.noise import Noise
from oodscope.training.augment.style import StyleSwap, swapped
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.distill import mean_prediction, soft_loss
from oodscope.training.methods.noise import NoiseGenerator, scaled
from oodscope.training.registry import create_recipe
from tests.training.every_method import FAST, SCALE, prepared, run
from tests.training.training_toys import same_weights


def near(value, digits=1e-6):
    return pytest.approx(value, abs=digits, rel=digits)


def pictures(count=40, side=32, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 256, (count, 3, side, side), dtype=np.uint8))


class TestAutoAugment:
    def test_the_policy_is_torchvision_s(self):
        theirs = Theirs(AutoAugmentPolicy.CIFAR10).policies
        names = {name.replace("X", "_x").replace("Y", "_y").lower() for pair in theirs for name, _, _ in pair}
        assert {part.split()[0] for pair in POLICY for part in pair} == names
        for ours, pair in zip(POLICY, theirs, strict=True):
            for part, (name, chance, step) in zip(ours, pair, strict=True):
                own = part.split()
                assert own[0] == name.replace("X", "_x").replace("Y", "_y").lower()
                assert (float(own[1]), int(own[2])) == (chance, step or 0)

    @pytest.mark.parametrize("pair", range(25))
    def test_each_pair_is_what_torchvision_makes_one_by_one(self, pair):
        pixels = pictures(2, seed=pair)
        space = Theirs()._augmentation_space(BINS, (32, 32))
        for place in (0, 1):
            name, _, step = Theirs(AutoAugmentPolicy.CIFAR10).policies[pair][place]
            magnitudes, signed = space[name]
            size = float(magnitudes[step]) if step is not None else 0.0
            for positive in (True, False):
                size_there = -size if signed and not positive else size
                expected = torch.stack(
                    [_apply_op(each, name, size_there, InterpolationMode.BILINEAR, None) for each in pixels]
                )
                chosen = torch.full((2,), pair)
                made = AutoAugment()._apply(pixels, place, chosen, torch.full((2,), -1.0), torch.full((2,), positive))
                difference = (made.int() - expected.int()).abs()
                assert (difference > 1).float().mean() < 0.01, (name, positive)

    def test_all_pairs_are_drawn(self):
        pixels = pictures(3000, side=8)
        made = AutoAugment()(pixels, torch.Generator().manual_seed(0))
        same = (made == pixels).flatten(1).all(1).float().mean().item()
        still = np.mean([np.prod([1 - float(part.split()[1]) for part in pair]) for pair in POLICY])
        assert still - 0.03 < same < still + 0.2, "some operations also leave noise as it is"


class TestNoise:
    def test_half_of_the_images_get_noise_of_this_size(self):
        pixels = torch.full((400, 3, 16, 16), 128, dtype=torch.uint8)
        made = Noise(sigma=(0.1,))(pixels, torch.Generator().manual_seed(0)).float() / 255
        spread = made.flatten(1).std(dim=1)
        noisy = spread > 0.01
        assert noisy.float().mean().item() == pytest.approx(0.5, abs=0.08)
        assert spread[noisy].mean().item() == pytest.approx(0.1, rel=0.03)

    def test_speckle_grows_with_the_pixel(self):
        pixels = torch.full((60, 3, 16, 16), 51, dtype=torch.uint8)
        made = Noise(form="speckle", sigma=(0.5,), share=1)(pixels, torch.Generator().manual_seed(0)).float() / 255
        assert made.std().item() == pytest.approx(0.5 * 0.2, rel=0.05)

    def test_several_sizes_are_drawn_equally_often(self):
        pixels = torch.full((600, 3, 16, 16), 128, dtype=torch.uint8)
        made = Noise(sigma=(0.02, 0.1), share=1)(pixels, torch.Generator().manual_seed(0)).float() / 255
        assert (made.flatten(1).std(dim=1) > 0.06).float().mean().item() == pytest.approx(0.5, abs=0.07)


class TestANT:
    def test_noise_has_its_length_exactly(self):
        made = scaled(NoiseGenerator()(torch.randn(5, 3, 8, 8)), 1.3)
        assert made.flatten(1).norm(dim=1).tolist() == near([1.3] * 5, 1e-5)

    def test_the_generator_climbs_where_the_classifier_descends(self):
        recipe, net, shown = prepared("ant", share=1.0, epsilon=2.0)
        net.eval()
        net.noise_generator.store()
        before = recipe.loss(net, shown)
        before.loss.backward()
        with torch.no_grad():
            for each in net.noise_generator.parameters():
                each -= 0.5 * each.grad
        shown.draws.manual_seed(1)
        assert recipe.loss(net, shown).loss > before.loss, "a step of descent on the reversed gradient"

    def test_past_generators_are_those_that_were_stored(self):
        generator, noise = NoiseGenerator(), torch.randn(2, 3, 4, 4)
        generator.store()
        first = generator(noise).detach()
        with torch.no_grad():
            for each in generator.parameters():
                each.add_(1.0)
        generator.store()
        torch.testing.assert_close(generator.with_weights(noise, generator.earlier(torch.tensor(0.1))), first)
        later = generator.with_weights(noise, generator.earlier(torch.tensor(0.9)))
        torch.testing.assert_close(later, generator(noise))

    def test_it_changes_half_of_a_batch(self):
        recipe, net, shown = prepared("ant")
        net.noise_generator.store()
        seen = []
        net.conv.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
        inside = shown._replace(images=SCALE.from_pixels(torch.rand(200, 3, 12, 12)), labels=torch.arange(200) % 3)
        recipe.loss(net.eval(), inside)
        moved = ((seen[0] - inside.images).abs().flatten(1).amax(1) > 1e-4).float().mean().item()
        assert moved == pytest.approx(0.5, abs=0.12)


class TestStyle:
    def test_the_own_style_changes_nothing(self):
        images = torch.rand(3, 3, 16, 16) * 0.6 + 0.2
        torch.testing.assert_close(swapped(images, images, torch.ones(3, 1, 1, 1)), images, rtol=0, atol=1e-5)

    def test_colours_become_those_of_the_other_image(self):
        images, other = torch.rand(2, 3, 16, 16) * 0.2 + 0.4, torch.rand(2, 3, 16, 16) * 0.2 + 0.5
        made = swapped(images, other, torch.ones(2, 1, 1, 1))
        torch.testing.assert_close(made.mean((2, 3)), other.mean((2, 3)), rtol=0, atol=1e-3)

    def test_half_of_a_batch(self):
        pixels = pictures(200, side=8)
        made = StyleSwap(share=0.5)(pixels, torch.Generator().manual_seed(0))
        same = (made == pixels).flatten(1).all(1).float().mean().item()
        assert same == pytest.approx(0.5, abs=0.1)


class TestDistillation:
    def test_oracles(self):
        given = [torch.tensor([p]).log() for p in ((0.7, 0.2, 0.1), (0.5, 0.4, 0.1))]
        target = mean_prediction(given, 1.0)
        assert target[0].tolist() == near([0.6, 0.3, 0.1])
        logits = torch.tensor([[1, 0.5, -0.5]])
        assert soft_loss(logits, target, 1.0).item() == near(0.904131)
        entropy = -(target * target.log()).sum().item()
        assert soft_loss(logits, target, 1.0).item() - entropy == near(0.006185)

    def test_a_student_equal_to_its_teacher_is_at_rest(self):
        z = torch.randn(4, 3, requires_grad=True)
        soft_loss(z, mean_prediction([z.detach()], 2.0), 2.0).backward()
        assert z.grad.abs().max() < 1e-6

    def test_labels_alone_are_cross_entropy(self):
        recipe, net, shown = prepared("distill", labels=1.0)
        expected = CrossEntropy().loss(net.eval(), shown).loss
        torch.testing.assert_close(recipe.loss(net, shown).loss, expected)

    def test_what_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match="distill needs teachers"):
            run(create_recipe("distill", **FAST))
        with pytest.raises(UsageError, match=r"holds no model\.safetensors"):
            run(create_recipe("distill", **FAST, teachers=[str(tmp_path)]))


def test_noise_of_no_image_is_cross_entropy_to_the_bit():
    quiet = create_recipe("noise", **{**FAST, "augment": [{"pad": 2}, {"kind": "noise", "share": 0}]})
    plain = run(CrossEntropy(**{**FAST, "augment": [{"pad": 2}]}))
    assert same_weights(plain.model, run(quiet).model)


def test_unknown_settings_are_one_line():
    with pytest.raises(OodscopeError, match="form"):
        create_recipe("noise", augment=[{"kind": "noise", "form": "salt"}])
