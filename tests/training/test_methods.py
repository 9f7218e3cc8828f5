"""Every training method: its loss to six digits, and what all of them promise."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

import oodscope.training.loop.lockstep as lockstep
from oodscope.base.errors import ModelError
from oodscope.data.imageset import ImageSet
from oodscope.training.augment.reading import KINDS, read_augment
from oodscope.training.methods.arpl import ARPL, ReciprocalPoints
from oodscope.training.methods.augmix_jsd import AugMixJSD, divergence
from oodscope.training.methods.conf_branch import ConfBranch, hinted_loss
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.cutmix import CutMix, box
from oodscope.training.methods.ish import ISH
from oodscope.training.methods.logitnorm import LogitNorm
from oodscope.training.methods.mixoe import MixOE, soft_loss
from oodscope.training.methods.mixup import Mixup, drawn_share, mixed_loss
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.methods.regmixup import RegMixup
from oodscope.training.methods.rotpred import RotPred, turn_loss
from oodscope.training.methods.t2fnorm import T2FNorm, TrainedToFeatures
from oodscope.training.methods.vos import VOS
from oodscope.training.recipe import Batch, TrainingFacts
from oodscope.training.registry import create_recipe
from oodscope.training.train import train
from tests.training.every_method import FAST, LEARNS, MADE, PLAIN, fast, prepared, run
from tests.training.training_toys import PREPROCESS, StoppedError, TinyNet, colours, same_weights, stop_at

D = torch.float64
Z = torch.tensor([[2, 1, 0.1], [0.5, 2.5, 0.3]], dtype=D)
Y = torch.tensor([0, 2])
U = torch.tensor([[1, 0, -1], [0.2, 0.4, 0.6]], dtype=D)
F = torch.tensor([[1, 2], [0.5, -1]], dtype=D)
W = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=D)
B = torch.tensor([0.1, 0, -0.1], dtype=D)
VIEWS = [
    torch.tensor([[1.5, 1.2, 0.3], [0.2, 2, 1]], dtype=D),
    torch.tensor([[2.2, 0.1, 0.1], [0.9, 1.5, 0.8]], dtype=D),
]
FACTS = TrainingFacts(class_names=("a", "b", "c"), n_train=96, size=12)


def near(value, digits=1e-6):
    return pytest.approx(value, abs=digits, rel=digits)


def giving(output):
    """A network that returns ``output`` whatever it is shown."""

    class Fixed(nn.Module):
        def forward(self, images):
            return output

    return Fixed()


def batch(images=None, labels=Y, **more):
    shown = torch.zeros(len(labels), 3, 4, 4) if images is None else images
    return Batch(shown, labels, torch.arange(len(labels)), draws=torch.Generator().manual_seed(0), **more)


class TestOracles:
    def test_cross_entropy(self):
        assert CrossEntropy().loss(giving(Z), batch()).loss.item() == near(1.418540)

    def test_logitnorm(self):
        recipe, z = LogitNorm(), Z.float().requires_grad_()
        each = cross_entropy(recipe.scaled(Z), Y, reduction="none")
        assert each.tolist() == near([0.000014, 21.424957], 5e-7)
        assert recipe.loss(giving(Z), batch()).loss.item() == near(10.712486)
        assert recipe.loss(giving(7 * Z), batch()).loss.item() == near(10.712486, 2e-6)
        recipe.loss(giving(z), batch()).loss.backward()
        assert (z.grad * z).sum(dim=1).abs().max() < 1e-5
        floor = math.log1p(9 * math.exp(-math.sqrt(10 / 9) / 0.04))
        assert floor == pytest.approx(3.232794e-11, rel=1e-5)

    def test_t2fnorm(self):
        head = nn.Linear(2, 3).double()
        with torch.no_grad():
            head.weight.copy_(W)
            head.bias.copy_(B)
        net = nn.Sequential(TrainedToFeatures(0.1, scale_at_test=True), head).double()
        expected = [[4.572136, 8.944272, 13.316408], [4.572136, -8.944272, -4.572136]]
        assert net.train()(F).float().tolist() == [near(row, 2e-6) for row in expected]
        assert cross_entropy(net(F), Y).item() == near(8.950677, 2e-6)
        torch.testing.assert_close(net(3 * F), net(F), rtol=1e-6, atol=1e-5)
        at_test = net.eval()(F)
        assert at_test.tolist() == [near(row, 2e-6) for row in [[10.1, 20, 29.9], [5.1, -10, -5.1]]]
        assert at_test.softmax(1).amax(1).tolist() == near([0.999950, 0.999963])
        tuned = T2FNorm(scale_at_test=False).prepare(TinyNet(), FACTS).eval()
        features = torch.rand(5, 32)
        torch.testing.assert_close(tuned.fc(features), tuned.fc[1](features))

    def test_conf_branch(self):
        confidence = torch.tensor([0.4, -0.2], requires_grad=True)
        coins = torch.tensor([True, False])
        hinted, price = hinted_loss(Z, confidence, Y, coins)
        assert (hinted.item(), price.item()) == (near(1.324198), near(0.655577))
        (hinted + 0.1 * price).backward()
        assert confidence.grad.tolist() == near([0.031407, -0.027492])
        for all_coins, expected in ((True, 0.378107), (False, 1.418540)):
            assert hinted_loss(Z, confidence, Y, torch.full((2,), all_coins))[0].item() == near(expected)
        sure = torch.full((2,), 60.0)
        assert hinted_loss(Z, sure, Y, torch.tensor([True, True]))[0].item() == near(1.418540)

    def test_the_price_of_hints_is_steered_to_the_budget(self):
        for logit, factor in ((-0.2, 1 / 0.99), (5.0, 1 / 1.01)):
            net = ConfBranch().prepare(TinyNet(), FACTS)
            with torch.no_grad():
                net.fc.branches["confidence"].weight.zero_()
                net.fc.branches["confidence"].bias.fill_(logit)
            ConfBranch().loss(net, batch(torch.rand(2, 3, 12, 12)))
            assert net.confidence_weight.item() == near(0.1 * factor)

    def test_rotpred(self):
        rotation = torch.tensor([[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 3, 0], [1, 0, 0, 0]], dtype=D)
        assert turn_loss(rotation).tolist() == near([0.340753, 0.743668, 0.139206, 1.743668])
        output = {"logits": Z[:1].repeat(4, 1), "rotation": rotation}
        assert RotPred().loss(giving(output), batch(labels=Y[:1])).loss.item() == near(1.158854)

    def test_rotpred_turns_counter_clockwise(self):
        seen = []

        class Watching(nn.Module):
            def forward(self, images):
                seen.append(images)
                return {"logits": torch.zeros(len(images), 3), "rotation": torch.zeros(len(images), 4)}

        image = torch.arange(4.0).view(1, 1, 2, 2)
        RotPred().loss(Watching(), batch(image, torch.tensor([0])))
        assert seen[0][:, 0].tolist() == [[[0, 1], [2, 3]], [[1, 3], [0, 2]], [[3, 2], [1, 0]], [[2, 0], [3, 1]]]

    def test_arpl(self):
        layer = ReciprocalPoints(2, 3).double()
        with torch.no_grad():
            layer.points.copy_(torch.tensor([[0.5, 0], [0, 0.5], [-0.5, 0.5]]))
        found = layer(F)
        assert found["distances"].tolist() == [near(row) for row in [[2.125, 1.625, 2.25], [0.5, 1.25, 1.625]]]
        assert found["logits"].tolist() == [near(row) for row in [[1.625, 0.625, 1.75], [0.25, 1.75, 2.375]]]
        step = ARPL().loss(giving(found), batch())
        assert step.loss.item() == near(0.997659)
        assert found["logits"].softmax(1).amax(1).tolist() == near([0.453073, 0.604341])
        step.loss.backward()
        assert layer.radius.grad.item() == near(-0.1)
        assert ARPL(weight=0).loss(giving(layer(F)), batch()).loss.item() == near(0.710159)

    def test_augmix_jsd(self):
        views = (Z, *VIEWS)
        assert divergence(views).item() == near(0.043362)
        assert AugMixJSD().loss(giving(torch.cat(views)), batch()).loss.item() == near(1.938880)
        assert AugMixJSD().loss(giving(Z.repeat(3, 1)), batch()).loss.item() == near(1.418540)

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            (((0.7, 0.2, 0.1), (0.6, 0.3, 0.1), (0.2, 0.5, 0.3)), 0.101599),
            (((1, 0, 0), (0, 1, 0), (0, 0, 1)), 1.098612),
            (((0.7, 0.2, 0.1),) * 3, 0.0),
        ],
    )
    def test_jensen_shannon_divergence(self, rows, expected):
        views = tuple(torch.tensor([row]).clamp(min=1e-30).log() for row in rows)
        assert divergence(views).item() == pytest.approx(expected, abs=2e-6)
        sure = [1e3 * torch.eye(3, dtype=D)[[number]] for number in range(3)]
        assert divergence(tuple(sure)).item() == near(math.log(3))

    def test_regmixup(self):
        share = torch.tensor(0.7, dtype=D)
        mixed = mixed_loss(VIEWS[0], Y, Y.flip(0), share)
        assert mixed.item() == near(1.370639)
        assert (1.418540 + mixed.item()) / 2 == near(1.394590)
        same = RegMixup().loss(giving(Z.repeat(2, 1)), batch(labels=torch.tensor([1, 1])))
        assert same.loss.item() == near(cross_entropy(Z, torch.tensor([1, 1])).item())

    @pytest.mark.parametrize(("share", "centre", "left"), [(0.3, (20, 5), 0.560547), (0.3, (16, 16), 0.339844),
                                                             (0.7, (31, 31), 0.920898)])  # fmt: skip
    def test_boxes(self, share, centre, left):
        inside = box(32, 32, torch.tensor(share), *(torch.tensor(each) for each in centre))
        assert 1 - inside.double().mean().item() == near(left)
        rows, columns = inside.any(1).nonzero().flatten(), inside.any(0).nonzero().flatten()
        edges = {(20, 5): (7, 32, 0, 18), (16, 16): (3, 29, 3, 29), (31, 31): (23, 32, 23, 32)}[centre]
        assert (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1) == edges

    def test_mixoe(self):
        assert soft_loss(Z, Y, torch.tensor(0.25, dtype=D)).item() == near(1.481040)
        uniform = -Z.log_softmax(1).mean().item()
        assert soft_loss(Z, Y, torch.tensor(0.0, dtype=D)).item() == near(uniform)
        assert soft_loss(Z, Y, torch.tensor(1.0, dtype=D)).item() == near(1.418540)

    def test_outlier_exposure(self):
        both = batch(ood=batch())
        assert OutlierExposure().loss(giving(torch.cat([Z, U])), both).loss.item() == near(1.499110)

    @pytest.mark.parametrize(("alpha", "beta"), [(0.2, 0.2), (20.0, 20.0), (0.1, 1.0)])
    def test_shares_have_the_law_of_beta(self, alpha, beta):
        made = [drawn_share(batch()._replace(draws=torch.Generator().manual_seed(seed)), alpha, beta).item()
                for seed in range(3000)]  # fmt: skip
        mean, spread = alpha / (alpha + beta), math.sqrt(alpha * beta / (alpha + beta + 1)) / (alpha + beta)
        assert np.mean(made) == pytest.approx(mean, abs=4 * spread / math.sqrt(3000))
        assert np.std(made) == pytest.approx(spread, rel=0.1)
        assert min(made) >= 0 and max(made) <= 1


@pytest.mark.parametrize("name", MADE)
class TestEveryMethod:
    def test_killed_and_resumed_is_byte_equal(self, name, tmp_path, monkeypatch):
        monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
        monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
        recipe = fast(name)
        whole = run(recipe)
        for step in (2, 9):
            with pytest.raises(StoppedError):
                run(recipe, folder=tmp_path, progress=stop_at(step))
        assert same_weights(whole.model, run(recipe, folder=tmp_path).model)

    def test_it_learns(self, name):
        # the recipes that fine-tune start at a rate that is too low for a fresh network
        trained = run(fast(name, **LEARNS.get(name, {"epochs": 8, "batch_size": 40})), 240, val=colours(90, seed=1))
        assert max(epoch.val_accuracy for epoch in trained.history) > 0.8

    def test_gradients_reach_every_parameter(self, name):
        recipe, net, shown = prepared(name)
        recipe.loss(net, shown).loss.backward()
        learnt = [(key, value) for key, value in net.named_parameters() if value.requires_grad]
        still = [key for key, value in learnt if value.grad is None or not value.grad.any()]
        # what follows by a constant from the others has no gradient of its own: a bias before a normalisation
        assert set(still) <= {"conv.bias", "fc.any_class.0.bias"}, still

    def test_rates_are_positive_and_reach_all_groups(self, name):
        recipe = fast(name, warmup_epochs=1)
        # by BiT's rule the first rate of MOS is 0
        factors = [recipe.schedule(step, 6) for step in range(name == "mos", 18)]
        assert all(0 < factor <= 1 for factor in factors)
        _, net, _ = prepared(name)
        held = [parameter for group in recipe.optimizer(net).param_groups for parameter in group["params"]]
        assert {id(each) for each in held} >= {id(each) for each in net.parameters() if each.requires_grad}

    def test_it_says_what_it_is(self, name):
        recipe = MADE[name]
        assert recipe.name == name and (type(recipe).__doc__ or "").strip()
        assert recipe.can_be_recorded() is (name not in PLAIN)
        again = type(recipe).model_validate({key: value for key, value in recipe.describe().items() if key != "method"})
        assert again == recipe
        assert create_recipe(name, **recipe.model_dump(mode="json")) == recipe


ASKING = {"_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "_unique2", "unique_dim"}
"""Operations whose result decides what the host does next."""

FETCHING = {"lift_fresh", "lift_fresh_copy"}
"""Operations that bring numbers from the host to the device: in a recording they would be copied once, or forbid it."""


class Listening(TorchDispatchMode):
    """Notes every operation that would make a GPU wait for the host."""

    def __init__(self):
        super().__init__()
        self.heard = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masked = name == "index" and any(each is not None and each.dtype == torch.bool for each in args[1])
        if name in ASKING | FETCHING or masked:
            self.heard.append(str(func))
        return func(*args, **(kwargs or {}))


class TestRecordable:
    """What a GPU records must ask the host for nothing; here a CPU listens."""

    @pytest.mark.parametrize("name", [name for name in MADE if name not in PLAIN])
    def test_a_step(self, name):
        recipe, net, shown = prepared(name)
        with Listening() as ear:
            recipe.loss(net, shown).loss.backward()
        assert not ear.heard

    @pytest.mark.parametrize("name", [*KINDS, "chain"])
    def test_an_augmentation(self, name):
        augment = read_augment([*KINDS] if name == "chain" else name)
        pixels = torch.randint(0, 256, (8, 3, 12, 12), dtype=torch.uint8)
        draws = torch.Generator().manual_seed(0)
        augment(pixels, draws)  # what is drawn once, such as fractals, is there by the time of a recording
        with Listening() as ear:
            augment.after_scaling(augment(pixels, draws).float(), draws)
        assert not ear.heard

    def test_the_ear_hears(self):
        with Listening() as ear:
            values = torch.rand(3)
            _ = values[values > 0.5], values.sum().item(), torch.tensor([1.0])
        assert {each.split(".")[1] for each in ear.heard} == {"index", "_local_scalar_dense", "lift_fresh"}


UNORDERED = {
    "cross_entropy": {}, "logitnorm": {}, "t2fnorm": {}, "arpl": {}, "rotpred": {}, "outlier_exposure": {}, "godin": {},
    "vos": {}, "palm": {}, "reweightood": {}, "ish": {}, "mcd": {}, "udg": {}, "csi": {}, "csi_heads": {},
    "mos": {"alpha": 0.0}, "ascood": {"spoil": "gradient"},
}  # fmt: skip
"""Methods to which the order of a batch is nothing, in a form that draws no numbers image by image. The prototypes of
``cider`` and ``npos`` follow one image after the other: to them it is something by definition."""


@pytest.mark.parametrize("name", UNORDERED)
def test_the_order_of_the_batch_does_not_matter(name):
    recipe, net, shown = prepared(name, **UNORDERED[name])
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    images = torch.cat([view[order] for view in shown.images.split(12)])
    other = shown._replace(images=images, labels=shown.labels[order], rows=shown.rows[order])
    expected = recipe.loss(net, shown).loss
    recipe, net, _ = prepared(name, **UNORDERED[name])  # without what the first step left behind
    other.draws.manual_seed(1)
    torch.testing.assert_close(recipe.loss(net, other).loss, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["outlier_exposure", "mcd", "udg"])
def test_the_order_of_the_outliers_does_not_matter(name):
    recipe, net, shown = prepared(name)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    other = shown.ood._replace(images=shown.ood.images[order], rows=shown.ood.rows[order])
    found = recipe.loss(net, shown._replace(ood=other)).loss
    torch.testing.assert_close(found, recipe.loss(net, shown).loss, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "recipe",
    [
        Mixup(alpha=1e4),
        CutMix(probability=0.0),
        RotPred(weight=0.0),
        ARPL(weight=0.0),
        MixOE(weight=0.0, ood_batch_size=1),
        VOS(weight=0.0, queue=4, outlier_epoch=0),
        ISH(),
    ],
    ids=lambda recipe: recipe.name,
)
def test_reductions_to_cross_entropy(recipe):
    torch.manual_seed(0)
    net = recipe.prepare(TinyNet(), FACTS).eval()
    images, labels = torch.rand(12, 3, 12, 12), torch.arange(12) % 3
    if recipe.name == "mixup":
        images, labels = images[:1].repeat(12, 1, 1, 1), labels[:1].repeat(12)
    shown = Batch(images, labels, torch.arange(12), ood=batch(images), draws=torch.Generator().manual_seed(0))
    plain = CrossEntropy().loss(net, shown).loss
    torch.testing.assert_close(recipe.loss(net, shown).loss, plain, rtol=1e-5, atol=1e-6)


def test_logitnorm_refuses_a_head_of_zeros():
    net = TinyNet()
    nn.init.zeros_(net.fc.weight)
    nn.init.zeros_(net.fc.bias)
    with pytest.raises(ModelError, match="this head starts with zeros only"):
        train(net, LogitNorm(**FAST), colours(), PREPROCESS, device="cpu")


def test_an_heir_with_a_loss_of_its_own_must_say_that_it_can_be_recorded():
    class Heir(LogitNorm):
        def loss(self, model, batch):
            return super().loss(model, batch)

    class Sworn(Heir):
        recordable = True

        def loss(self, model, batch):
            return super().loss(model, batch)

    class Renamed(LogitNorm):
        temperature: float = 0.1

    assert not Heir.can_be_recorded() and Sworn.can_be_recorded() and Renamed.can_be_recorded()


def test_keep_best_takes_the_latest_of_the_best_epochs(tmp_path):
    marks = []

    class Marked(CrossEntropy):
        def start_epoch(self, model, epoch, streams):
            marks.append({name: value.clone() for name, value in model.state_dict().items()})

    settings = {**FAST, "epochs": 8, "learning_rate": 0.003}
    clean = colours(60, seed=1)
    val = ImageSet("wrong", clean.source, (clean.labels + 1) % 3, clean.class_names)  # what is learnt makes it worse
    recipe = Marked(**settings, keep="best")
    kept = train(TinyNet, recipe, colours(), PREPROCESS, val=val, device="cpu", folder=tmp_path)
    accuracies = [epoch.val_accuracy for epoch in kept.history]
    latest = len(accuracies) - 1 - accuracies[::-1].index(max(accuracies))
    last = train(TinyNet, CrossEntropy(**settings), colours(), PREPROCESS, val=val, device="cpu")
    expected = [*marks[1:], last.model.state_dict()][latest]
    assert latest < 7, "a world in which the best epoch is not the last"
    assert all(torch.equal(kept.model.state_dict()[key], value) for key, value in expected.items())
    assert last.last is None
    assert all(torch.equal(kept.last[key], value) for key, value in last.model.state_dict().items())
    again = train(TinyNet, recipe, colours(), PREPROCESS, val=val, device="cpu", folder=tmp_path)
    assert same_weights(again.model, kept.model)
    assert all(torch.equal(again.last[key], value) for key, value in kept.last.items())
