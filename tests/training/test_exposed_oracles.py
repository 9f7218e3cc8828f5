"""Methods that learn from outliers, and images attacked on the way: oracles, invariants, what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

import oodscope as oods
from oodscope.base.errors import DetectorError, ModelError, OodscopeError
from oodscope.detectors.registry import create_detector
from oodscope.generation.samplers.projected_gradient import ProjectedGradient
from oodscope.generation.search.target import Noise, Target, Visits
from oodscope.generation.variations.linf import LInf
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.intervals import (
    Interval,
    bounded_layers,
    box_around,
    certified_confidence,
    logit_differences,
    propagated,
)
from oodscope.models.small import SMALL_NETS
from oodscope.training.methods.atom import mined
from oodscope.training.methods.ceda import confidence
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.energy_oe import hinges
from oodscope.training.methods.good import spread_loss
from oodscope.training.perturbation import Attack, Ball, steepest, worst_in_ball
from oodscope.training.recipe import Batch
from oodscope.training.registry import create_recipe
from tests.training.every_method import FAST, SCALE, prepared, run
from tests.training.training_toys import PREPROCESS, Bounded, TinyNet, colours, negatives, same_weights

W = torch.tensor([1.0, -2.0, 0.5])


def near(value, digits=1e-6):
    return pytest.approx(value, abs=digits, rel=digits)


def rows(count=5, seed=0):
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(seed)) * 0.4 + 0.3


class TestAttack:
    @pytest.mark.parametrize(("norm", "gain"), [("linf", 0.35), ("l2", 0.229129)])
    def test_a_linear_network_is_attacked_exactly(self, norm, gain):
        images = rows()
        found = worst_in_ball(lambda x: x @ W, images, Ball(norm, 0.1), steps=10, step=0.05)
        assert ((found - images) @ W).tolist() == near([gain] * 5, 1e-5)

    @given(norm=st.sampled_from(["linf", "l2"]), epsilon=st.floats(0.01, 0.8), seed=st.integers(0, 50))
    @settings(max_examples=25, deadline=None)
    def test_attacked_images_stay_in_the_ball_and_the_box(self, norm, epsilon, seed):
        draws = torch.Generator().manual_seed(seed)
        images, ball = torch.rand(4, 2, 3, 3, generator=draws), Ball(norm, epsilon)
        weight = torch.randn(2, 3, 3, generator=draws)

        def objective(x):
            return torch.sin(4 * (x * weight).flatten(1).sum(1))

        start = ball.drawn(images, draws)
        found = worst_in_ball(objective, images, ball, steps=4, step=epsilon / 2, start=start, keep="best")
        difference = (found - images).flatten(1)
        length = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
        assert (length <= epsilon * (1 + 1e-5)).all() and found.min() >= 0 and found.max() <= 1
        clean = worst_in_ball(objective, images, ball, steps=4, step=epsilon / 2, keep="best")
        assert (objective(clean) >= objective(images) - 1e-6).all(), "the best is never better for the network"

    def test_without_steps_images_come_back_bit_for_bit(self):
        images, net = torch.randn(3, 3, 12, 12), TinyNet()
        draws = torch.Generator()
        assert Attack(Ball("l2", 0.5), 0, 0.1)(net, lambda x: x.sum(), images, SCALE, draws) is images

    def test_equal_seeds_give_equal_images_and_leave_the_network_alone(self):
        net = TinyNet().train()
        images = SCALE.from_pixels(torch.rand(6, 3, 12, 12))
        before = {name: value.clone() for name, value in net.state_dict().items()}
        labels = torch.arange(6) % 3
        found = [
            Attack(Ball("linf", 0.05), 3, 0.02, random_start=True)(
                net, lambda x: cross_entropy(net(x), labels, reduction="none"), images, SCALE,
                torch.Generator().manual_seed(7))
            for _ in range(2)
        ]  # fmt: skip
        assert torch.equal(*found) and net.training and all(each.grad is None for each in net.parameters())
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items()), "also its statistics"

    @pytest.mark.parametrize("value", [0.0, 1.0])
    @pytest.mark.parametrize("norm", ["linf", "l2"])
    def test_black_and_white_images_can_be_moved(self, norm, value):
        images = torch.full((2, 3), value)
        way = 1.0 if value == 0 else -1.0
        found = worst_in_ball(lambda x: way * x.sum(1), images, Ball(norm, 0.1), steps=4, step=0.05)
        assert (way * (found - images) > 0.05).all(), "the end of the range does not hold them"

    def test_a_search_in_the_ball_ends_where_training_does(self):
        """One step for both: the white-box sampler and the attack of a recipe find the same corner."""
        images = torch.rand(6, 3, 1, 1, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
        weight = W.view(3, 1, 1)

        def score(pixels):
            return (pixels.float() * weight).sum(dim=(1, 2, 3))

        trained = worst_in_ball(lambda x: -score(x), images, Ball("linf", 0.05), steps=12, step=0.02)
        ball = LInf(image_shape=(3, 1, 1), epsilon=0.05)
        visits, noise = Visits(6, 3, (20,), torch.device("cpu")), Noise(0, 0, torch.device("cpu"))
        target = Target(
            lambda at, shown: score(ball(at, shown)).double(), images, lambda s: s, ball.domain, noise, visits
        )
        points = torch.full((6, ball.domain.dimension), 0.5)
        sampler = ProjectedGradient(step=0.4)
        state = sampler.begin(target, points)
        for number in range(12):
            sampler.move(target, state, number)
        torch.testing.assert_close(ball(state.points, images), trained)

    @pytest.mark.parametrize(
        ("name", "settings", "passes"),
        [
            ("acet", {"attack_steps": 4}, lambda known, out: known + (4 + 2) * out),
            ("l2_adversarial", {"attack_steps": 3}, lambda known, out: (3 + 1) * known),
            ("atom", {"attack_steps": 3}, lambda known, out: known + out + (3 + 1) * (out // 2)),
            ("rowl", {"attack_steps": 5}, lambda known, out: (5 + 3) * (known + out)),
            ("rowl_released", {}, lambda known, out: known + out),
            ("ceda", {}, lambda known, out: known + out),
        ],
    )
    def test_passes_of_a_step(self, name, settings, passes):
        recipe, net, shown = prepared(name, **settings)
        seen = []
        net.conv.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
        recipe.loss(net, shown)
        assert sum(seen) == passes(len(shown.images), 0 if shown.ood is None else len(shown.ood.images))

    def test_random_starts_fill_the_ball(self):
        draws = torch.Generator().manual_seed(0)
        lengths = Ball("l2", 2.0).drawn(torch.zeros(4000, 3), draws).norm(dim=1)
        assert lengths.max() <= 2 and (lengths < 2 * 0.5 ** (1 / 3)).float().mean().item() == pytest.approx(
            0.5, abs=0.03
        )
        box = Ball("linf", 0.3).drawn(torch.zeros(4000, 2), draws)
        assert box.abs().max() <= 0.3 and box.std().item() == pytest.approx(0.3 / math.sqrt(3), rel=0.05)

    def test_a_gradient_of_zero_moves_nothing(self):
        assert not steepest(torch.zeros(2, 3), "l2").any() and not steepest(torch.zeros(2, 3), "linf").any()


class TestAdversarialTraining:
    def test_without_steps_it_is_cross_entropy_to_the_bit(self):
        plain = run(CrossEntropy(**FAST))
        still = run(create_recipe("l2_adversarial", **FAST, attack_steps=0, attack_start="image"))
        assert same_weights(plain.model, still.model)

    def test_it_learns_from_images_at_its_radius(self):
        recipe, net, shown = prepared("l2_adversarial", epsilon=0.5)
        seen = []
        net.conv.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
        recipe.loss(net, shown)
        moved = SCALE.to_pixels(seen[-1]) - SCALE.to_pixels(shown.images).clamp(0, 1)
        assert moved.flatten(1).norm(dim=1).max() <= 0.5 + 1e-4 and moved.flatten(1).norm(dim=1).min() > 0.1

    def test_attacked_training_makes_attacks_weaker(self):
        settings = {**FAST, "epochs": 6}
        recipes = (CrossEntropy(**settings), create_recipe("l2_adversarial", **settings, epsilon=2.0))
        images = SCALE.from_pixels(torch.rand(60, 3, 12, 12, generator=torch.Generator().manual_seed(0)))
        attack, drops = Attack(Ball("l2", 1.0), 10, 0.25, keep="best"), []
        for recipe in recipes:
            net = run(recipe).model.eval()
            labels = net(images).argmax(1)

            def loss(x, net=net, labels=labels):
                return cross_entropy(net(x), labels, reduction="none")

            moved = attack(net, loss, images, SCALE, torch.Generator())
            drops.append((loss(moved) - loss(images)).mean().item())
        assert drops[1] < drops[0]


class TestCEDA:
    Z = torch.tensor([[-0.2, 0.65, 0.2]], dtype=torch.float64)

    def test_oracles(self):
        assert confidence(self.Z, "log_max").item() - math.log(3) == near(-0.725151)
        assert confidence(self.Z, "uniform").item() + math.log(3) == near(1.158484)
        flat = torch.zeros(2, 10)
        for kind in ("log_max", "uniform"):
            assert confidence(flat, kind).tolist() == near([0, 0])

    def test_without_weight_it_is_cross_entropy_to_the_bit(self):
        settings = {**FAST, "ood_batch_size": 16}
        plain = run(CrossEntropy(**FAST))
        assert same_weights(plain.model, run(create_recipe("ceda", **settings, weight=0)).model)

    def test_acet_without_steps_is_ceda(self):
        found = []
        for name, more in (("ceda", {"outlier_loss": "uniform"}), ("acet", {"attack_steps": 0})):
            recipe, net, shown = prepared(name, **more)
            found.append(recipe.loss(net, shown).loss)
        assert torch.equal(*found)

    def test_acet_shows_worse_outliers(self):
        recipe, net, shown = prepared("acet", epsilon=0.2)
        net.eval()
        clean, moved = shown.ood.images, recipe.shown_outliers(net, shown)
        assert (confidence(net(moved), "uniform") > confidence(net(clean), "uniform")).all()
        inside = SCALE.to_pixels(clean)
        assert (SCALE.to_pixels(moved) - inside).abs().max() <= 0.2 + 1e-5


class TestEnergyOE:
    def test_hinges(self):
        assert hinges(torch.tensor([-20.0]), torch.tensor([-10.0]), -23.0, -5.0).item() == 34.0
        assert hinges(torch.tensor([-24.0]), torch.tensor([-4.0]), -23.0, -5.0).item() == 0.0

    def test_the_loss_adds_a_tenth_of_them(self):
        logits = torch.cat([torch.full((2, 1), 20.0), torch.full((3, 1), 10.0)]).repeat(1, 2) - math.log(2)
        shown = Batch(torch.zeros(2, 1), torch.tensor([0, 1]), torch.arange(2),
                      ood=Batch(torch.zeros(3, 1), torch.zeros(3), torch.arange(3)))  # fmt: skip
        found = create_recipe("energy_oe").loss(lambda images: logits, shown)
        assert found.loss.item() == near(math.log(2) + 3.4, 1e-5) and len(found.logits) == 2

    def test_it_parts_the_energies(self):
        recipe = create_recipe("energy_oe", **{**FAST, "epochs": 8}, ood_batch_size=16, known_energy=-6,
                               outlier_energy=-1, weight=0.5)  # fmt: skip
        net = run(recipe).model.eval()
        known, unknown = (
            net(SCALE.from_pixels(torch.from_numpy(np.stack(each.images(range(40)))).permute(0, 3, 1, 2) / 255))
            for each in (colours(40, seed=5), negatives(40))
        )
        assert known.logsumexp(1).mean() > unknown.logsumexp(1).mean() + 1


class TestATOM:
    sure = torch.tensor([0.9, 0.1, 0.5, 0.3, 0.7, 0.2, 0.8, 0.4])

    def test_mining_order(self):
        assert mined(self.sure, 0.125, 2).tolist() == [5, 3]
        assert sorted(mined(self.sure, 0.0, 8).tolist()) == list(range(8)), "a pool that is needed whole is shown whole"

    def test_mined_rows_are_those_least_rejected_and_shown_alone(self):
        class Watching(type(create_recipe("ntom"))):
            def loss(self, model, batch):
                assert torch.isin(batch.ood.rows, model.mined_outliers).all()
                return super().loss(model, batch)

        settings = {**FAST, "decay": "cosine", "ood_batch_size": 4}
        trained = run(Watching(**settings, share=0.1))
        chosen = trained.model.mined_outliers
        assert len(chosen) == round(0.1 * 96) and len(set(chosen.tolist())) == len(chosen)

    def test_without_outliers_it_is_cross_entropy_over_one_class_more(self):
        recipe, net, shown = prepared("ntom", weight=0.0)
        net.eval()
        output = net(shown.images)
        expected = cross_entropy(torch.cat([output["logits"], output["reject"]], 1), shown.labels)
        torch.testing.assert_close(recipe.loss(net, shown).loss, expected)

    def test_half_of_the_outliers_are_attacked_and_none_is_rejected_more(self):
        recipe, net, shown = prepared("atom")
        net.eval()
        found = recipe.shown_outliers(net, shown)
        assert torch.equal(found[:6], shown.ood.images[:6])

        def rejection(images):
            output = net(images)
            return output["reject"].flatten() - output["logits"].logsumexp(1)

        begun = SCALE.from_pixels((SCALE.to_pixels(shown.ood.images[6:])).clamp(0, 1))
        assert (rejection(found[6:]) < rejection(begun)).all()


class TestROWL:
    def test_released_form_is_twice_the_clean_loss(self):
        recipe, net, shown = prepared("rowl_released")
        net.eval()
        output = net(torch.cat([shown.images, shown.ood.images]))
        labels = torch.cat([shown.labels, torch.full((12,), 3)])
        clean = cross_entropy(torch.cat([output["logits"], output["reject"]], 1), labels)
        torch.testing.assert_close(recipe.loss(net, shown).loss, 2 * clean)

    def test_the_right_form_moves_nearly_all_images(self):
        recipe, net, shown = prepared("rowl")
        seen = []
        net.conv.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
        recipe.loss(net.eval(), shown)
        moved = (seen[-1] - seen[0]).abs().flatten(1).amax(1) > 1e-6
        assert moved.float().mean() > 0.9, "in the released code none is"


def oracle_network():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1, -2], [0.5, 1], [-1, 0.5]]))
        net[0].bias.copy_(torch.tensor([0.1, -0.2, 0]))
        net[2].weight.copy_(torch.tensor([[1, -1, 0.5], [-0.5, 2, 1], [0, 1, -1]]))
        net[2].bias.copy_(torch.tensor([0, 0.1, -0.1]))
    return net


class TestGOOD:
    x = torch.tensor([[0.5, 0.25]], dtype=torch.float64)

    def test_oracles(self):
        layers = bounded_layers(oracle_network())
        box = box_around(self.x, 0.1)
        hidden = propagated(layers[:1], box)
        assert hidden.lower[0].tolist() == near([-0.2, 0.15, -0.525])
        assert hidden.upper[0].tolist() == near([0.4, 0.45, -0.225])
        logits = propagated(layers, box)
        assert logits.lower[0].tolist() == near([-0.45, 0.2, 0.05]) and logits.upper[0].tolist() == near(
            [0.25, 1, 0.35]
        )
        differences = logit_differences(layers, box)[0]
        assert differences.max().item() == near(1.45) and differences[1].tolist() == near([1.45, 0, 0.65])
        assert certified_confidence(layers, box).item() == near(0.569276)
        naive = logits.upper[0][:, None] - logits.lower[0]
        naive.fill_diagonal_(0)
        assert naive[1].tolist() == near([1.45, 0, 0.95]), "the last layer propagated like any other"
        assert (1 / (-naive).exp().sum(1)).max().item() == near(0.616785), "so that less is proven"
        draws = np.random.default_rng(0).uniform(-0.1, 0.1, (20_000, 2))
        with torch.no_grad():
            largest = oracle_network()(self.x + torch.from_numpy(draws)).softmax(1).amax().item()
        assert 0.568 < largest <= 0.569276

    def test_loss_oracles(self):
        wide, z = torch.tensor([1.45]), torch.tensor([[-0.2, 0.65, 0.2]])
        assert spread_loss(wide, z, 1.0).item() == near(0.718449)
        assert spread_loss(wide, z, 0.0).item() == near(0.308403)
        several, flat = torch.tensor([3.0, 1.0, 2.0]), torch.zeros(3, 3)
        expected = (math.log(1.5) + math.log(3)) / 3
        assert spread_loss(several, flat, 0.7).item() == near(expected), "the smallest bounds count, the others do not"

    @given(seed=st.integers(0, 1000), epsilon=st.floats(0.0, 0.3))
    @settings(max_examples=20, deadline=None)
    def test_bounds_contain_every_sample(self, seed, epsilon):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 3)).double()  # fmt: skip
        image = torch.rand(1, 2, 8, 8, dtype=torch.float64)
        box, layers = box_around(image, epsilon), bounded_layers(net)
        inside = box.lower + (box.upper - box.lower) * torch.rand(500, 2, 8, 8, dtype=torch.float64)
        with torch.no_grad():
            logits, bounds = net(inside), propagated(layers, box)
            assert (logits >= bounds.lower - 1e-9).all() and (logits <= bounds.upper + 1e-9).all()
            assert (logits.softmax(1).amax(1) <= certified_confidence(layers, box) + 1e-9).all()
            if epsilon == 0:
                torch.testing.assert_close(bounds.lower, bounds.upper)

    def test_proven_auroc_is_below_the_attacked_one(self):
        from sklearn.metrics import roc_auc_score

        trained = run(create_recipe("good", **{**FAST, "epochs": 6}, ood_batch_size=16, epsilon=0.02))
        net, layers = trained.model.eval(), bounded_layers(trained.model)

        def pixels(images):
            return torch.from_numpy(np.stack(images.images(range(len(images))))).permute(0, 3, 1, 2).float() / 255

        known, outliers = (SCALE.from_pixels(pixels(each)) for each in (colours(40, seed=5), negatives(40)))
        box = Interval(*(SCALE.from_pixels(each) for each in box_around(SCALE.to_pixels(outliers), 0.02)))

        def sure(x):
            return net(x).softmax(1).amax(1)

        attack = Attack(Ball("linf", 0.02), 10, 0.005, keep="best")
        with torch.no_grad():
            clean, proven = sure(outliers), certified_confidence(layers, box)
        moved = sure(attack(net, sure, outliers, SCALE, torch.Generator())).detach()
        found = [
            roc_auc_score(np.r_[np.zeros(40), np.ones(40)], -torch.cat([sure(known).detach(), each]).numpy())
            for each in (proven, moved, clean)
        ]
        assert found == sorted(found) and (moved <= proven + 1e-6).all()

    def test_what_is_proven_is_a_detector(self):
        bench = oods.Benchmark(
            "b", "1", transform=PREPROCESS, id_train=colours(40, name="train"),
            id_test=colours(30, seed=2, name="test"), far=(colours(30, seed=3, name="other"),),
        )  # fmt: skip
        torch.manual_seed(0)
        classifier = Classifier(Bounded(), PREPROCESS, device="cpu")
        small, wide = (create_detector("guaranteed_msp", epsilon=each) for each in (1e-6, 0.05))
        scores = oods.evaluate(classifier, bench, ["msp", small, wide]).scores
        plain, close, far = (scores.scores(name, set="other") for name in ("msp", small.id, wide.id))
        np.testing.assert_allclose(close, plain, atol=1e-4)
        assert (far < plain).all()
        with pytest.raises(OodscopeError, match="guaranteed_msp.*needs a network with proven bounds"):
            oods.evaluate(Classifier(TinyNet(), PREPROCESS, device="cpu"), bench, ["guaranteed_msp"])
        with pytest.raises(DetectorError, match="epsilon must be above 0"):
            _ = create_detector("guaranteed_msp", epsilon=0).probes

    def test_a_network_without_bounds_is_refused_in_one_line(self):
        with pytest.raises(ModelError, match="no interval bounds are known for TinyNet"):
            create_recipe("good").prepare(TinyNet(), None)
        assert bounded_layers(SMALL_NETS["plain_cnn_32"]())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("l2_adversarial", "cross_entropy"),
        ("acet", "ceda"),
        ("atom", "ntom"),
        ("rowl", "rowl_released"),
        ("good", "ceda"),
    ],
)
@pytest.mark.parametrize("epsilon", [0, -0.1])
def test_a_radius_of_zero_is_refused_and_the_recipe_without_one_named(name, other, epsilon):
    with pytest.raises(OodscopeError, match=rf"epsilon.*must be above 0.*{other}"):
        create_recipe(name, epsilon=epsilon)
