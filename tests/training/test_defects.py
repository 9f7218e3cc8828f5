"""What is wrong in OpenOOD's released training code, and the proof that ours does not do it.

Numbers are those of our list of these defects and stand in the names of their tests; a defect without one fails. That
each method trains at all is ``test_methods.py``.
"""

import re

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.data.preprocess import Preprocess
from oodscope.training.augment.augmix import AugMix
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.methods.cider import CIDER
from oodscope.training.methods.mcd import gap
from oodscope.training.methods.mos import MOS
from oodscope.training.methods.npos import NPOS, farthest
from oodscope.training.methods.palm import PALM, sinkhorn
from oodscope.training.methods.prototypes import prototypes_of
from oodscope.training.methods.reweightood import ReweightOOD
from oodscope.training.methods.t2fnorm import T2FNorm
from oodscope.training.methods.udg import UDG, cluster_weights
from oodscope.training.registry import create_recipe
from tests.training.every_method import MADE, facts, fast, prepared, run
from tests.training.training_toys import PREPROCESS, TinyNet, colours, negatives

EMBEDDING_METHODS = [CIDER, NPOS, PALM, ReweightOOD]

WITHOUT = {
    19: "a name that numpy removed: CutMix trains in test_methods.py",
    23: "a call on a wrapper of two GPUs: T2FNorm keeps its scale in the network, and ranks train in test_ranks.py",
    25: "a trainer that its own scripts avoid: dropout is a layer of the network here",
    27: "the board names other epochs than were trained",
}
"""Defects that have no counterpart here."""


def proofs():
    """The tests of each defect, by the numbers in their names: ``test_t3_t15_...``, or of their class, ``TestT6T7``."""
    found = {}
    for name, held in globals().items():
        parts = [f"{name}_{each}" for each in vars(held)] if isinstance(held, type) else [name]
        for test in parts:
            for number in re.findall(r"(?<=_t|tT|\dT)(\d+)(?=_|T)", test) if "test_" in test else ():
                found.setdefault(int(number), []).append(test)
    return found


def test_every_defect_is_accounted_for():
    """All 31 of the list have a test that is collected, or a reason why there is none."""
    found = proofs()
    assert set(found) | set(WITHOUT) == set(range(1, 32)), sorted(set(range(1, 32)) - set(found) - set(WITHOUT))
    assert not set(found) & set(WITHOUT)
    assert found[15] == found[3] == ["test_t3_t15_one_schedule_scales_the_rates_of_all_groups"]
    assert len(found[6]) == len(found[7]) == 1 and len(found[14]) == 3 and len(found[13]) == 2


def gradient_of(name, weights, field="weight"):
    """What a change of a term's weight changes in the gradient of the first layer."""
    found = []
    for weight in weights:
        recipe, net, shown = prepared(name, **{field: weight})
        net.eval()
        torch.manual_seed(1)
        recipe.loss(net, shown).loss.backward()
        found.append(net.conv.weight.grad)
    return (found[1] - found[0]).abs().max().item()


class TestT1:
    """VOS: energies without gradient, weighted by a new random layer at every call."""

    def test_the_regulariser_teaches_the_backbone_and_its_weights(self):
        assert gradient_of("vos", (0.0, 1.0)) > 1e-5
        recipe, net, shown = prepared("vos")
        recipe.loss(net, shown).loss.backward()
        assert net.fc.weight_of_class.grad.abs().max() > 0
        held = [each for group in recipe.optimizer(net).param_groups for each in group["params"]]
        assert any(each is net.fc.weight_of_class for each in held)

    def test_two_calls_on_the_same_logits_agree(self):
        _, net, _ = prepared("vos")
        z, u = torch.randn(4, 3), torch.randn(3, 3)
        assert torch.equal(net.fc.real_or_virtual(z, u), net.fc.real_or_virtual(z, u))


@pytest.mark.parametrize(
    ("name", "field", "weights"),
    [("npos", "weight", (0.0, 1.0)), ("npos", "dispersion", (0.0, 1.0)), ("cider", "dispersion", (0.0, 1.0)),
     ("cider", "compactness", (0.0, 1.0)), ("palm", "contrast", (0.0, 1.0)), ("ascood", "weight", (0.0, 1.0)),
     ("mcd", "weight", (0.0, 1.0)), ("udg", "weight", (0.0, 1.0)), ("udg", "cluster_weight", (0.0, 1.0))],
)  # fmt: skip
def test_every_other_term_reaches_the_backbone_too(name, field, weights):
    assert gradient_of(name, weights, field) > 1e-6


def test_t2_entropies_of_mcd_are_those_of_images():
    first, second = torch.randn(5, 3), torch.randn(5, 3)
    order = torch.randperm(5)
    torch.testing.assert_close(gap(first[order], second[order]), gap(first, second))
    both = torch.cat([first, first]), torch.cat([second, second])
    torch.testing.assert_close(gap(*both), gap(first, second), msg="the size of the batch does not matter")
    bound = np.log(3)
    assert gap(torch.zeros(4, 3), 100 * torch.eye(3)[[0, 1, 2, 0]]).item() == pytest.approx(bound, abs=1e-5)
    u, v = torch.tensor([[1, 0, -1], [0.2, 0.4, 0.6]]), torch.tensor([[0.5, 0.5, 0], [2, -1, 0]])
    assert gap(u, v, dim=0).item() == pytest.approx(0.034027, abs=1e-6), "the released form, over the batch's axis"
    assert abs(gap(u, v).item() - 0.034027) > 0.1


@pytest.mark.parametrize("name", ["godin", "npos", "ish", "ascood", "csi", "csi_heads"])
def test_t3_t15_one_schedule_scales_the_rates_of_all_groups(name):
    rates = {}

    class Watched(type(MADE[name])):
        def optimizer(self, model):
            rates["groups"] = super().optimizer(model)
            return rates["groups"]

        def loss(self, model, batch):
            rates.setdefault("seen", []).append([group["lr"] for group in rates["groups"].param_groups])
            return super().loss(model, batch)

    settings = fast(name, **({"head_rate": 0.05} if name == "ascood" else {})).model_dump()
    run(Watched(**{**settings, "epochs": 2}), 48)
    seen = np.array(rates["seen"], dtype=float)
    assert seen.shape[1] == 2 and (seen > 0).all()
    ratios = seen / seen[0]
    np.testing.assert_allclose(ratios[:, 1], ratios[:, 0])
    assert ratios[-1, 0] < 0.5, "they fall"
    share = {"npos": 0.1, "ascood": 0.05}.get(name)
    if share:
        np.testing.assert_allclose(seen[:, 1], share * seen[:, 0])
    _, net, _ = prepared(name)
    decays = [group["weight_decay"] for group in MADE[name].optimizer(net).param_groups]
    expected = {"godin": [5e-4, 0.0], "ish": [5e-4, 5e-5], "npos": [1e-4, 1e-4]}.get(name)
    assert expected is None or decays == pytest.approx(expected)


class TestMOS:
    def test_t4_the_network_sees_the_mixed_images(self):
        seen = []

        class Watching(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, images):
                seen.append(images)
                return self.net(images)

        recipe, net, shown = prepared("mos", alpha=50.0)
        recipe.loss(Watching(net), shown)
        assert (seen[0] - shown.images).abs().amax(dim=(1, 2, 3)).gt(1e-3).float().mean() > 0.5

    def test_the_released_form_shows_plain_images_with_mixed_labels(self):
        recipe, net, shown = prepared("mos", alpha=50.0, parity=True)
        images = shown.images[:1].repeat(12, 1, 1, 1)
        alike = recipe.loss(net.eval(), shown._replace(images=images)).loss
        ours, _, again = prepared("mos", alpha=50.0)
        # where all images are one, mixing them changes nothing; elsewhere it does
        torch.testing.assert_close(ours.loss(net, again._replace(images=images)).loss, alike)
        released, ours = (prepared("mos", alpha=50.0, parity=each) for each in (True, False))
        assert released[0].loss(net, released[2]).loss.item() != ours[0].loss(net, ours[2]).loss.item()

    def test_t5_steps_are_part_of_the_recipe_and_any_number_of_images_trains(self):
        recipe = fast("mos", steps=7)
        assert recipe.total_steps(6) == 7
        assert len(run(recipe).history) == 2, "the second epoch ends after its first step"
        assert MOS().steps == 10_000


class TestT6T7:
    """CSI crashes at the end of its first epoch, and its second stage cannot load the first."""

    def test_both_stages_run_one_after_the_other(self):
        first = run(fast("csi", epochs=1), 48)
        second = create_recipe("csi_heads", epochs=1, batch_size=16)
        net = second.prepare(first.model, facts("csi_heads"))
        assert set(net(torch.rand(2, 3, 12, 12))) == {"logits", "rotation", "joint"}
        assert not net.conv.weight.requires_grad and net.fc.main.weight.requires_grad


def test_t8_colours_are_varied_before_images_are_normalised():
    from oodscope.training.loop.sets import Sets
    from oodscope.training.loop.streams import Streams

    means, deviations = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
    preprocess = Preprocess(size=12, mean=means, std=deviations)
    recipe = create_recipe("csi", batch_size=24, augment=["jitter"])
    streams = Streams(recipe, Sets(colours(48), None, None), preprocess, torch.device("cpu"))
    batch = next(streams.batches(0))
    assert len(batch.images) == 8 * 24, "two copies in four turns"
    # the darkest colour there is lies far below 0, and nothing is cut off there
    assert batch.images.min() < -1.2 and (batch.images == 0).float().mean() < 0.02
    pixels = batch.scale.to_pixels(batch.images)
    assert pixels.min() >= -1e-6 and pixels.max() <= 1 + 1e-6


def test_t8_released_colours_are_cut_off():
    images = torch.randn(400, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    pixels = (255 * torch.rand(4, 3, 8, 8)).to(torch.uint8)
    for jitter, cut in ((ColourJitter(), 0.0), (ColourJitter(normalised=True, grey=0), 0.8)):
        made = jitter.after_scaling(images, torch.Generator().manual_seed(1))
        inside = ((made >= 0) & (made <= 1)).flatten(1).all(dim=1).float().mean().item()
        assert inside == pytest.approx(cut, abs=0.06), "the share of views that is damaged"
    assert torch.equal(ColourJitter(normalised=True)(pixels, torch.Generator()), pixels), "and pixels are left alone"


def test_t9_warm_up_and_epochs_of_csi_are_as_documented():
    recipe = create_recipe("csi")
    assert (recipe.epochs, recipe.warmup_epochs) == (700, 10)
    factors = [recipe.schedule(epoch * 10, 10) for epoch in (0, 5, 10, 699)]
    assert factors == sorted(factors[:3]) + factors[3:] and factors[2] == pytest.approx(1.0) and factors[3] < 1e-3


@pytest.mark.parametrize("cls", EMBEDDING_METHODS)
def test_t10_t11_no_rate_is_negative_and_a_short_training_reaches_its_own(cls):
    recipe = cls()
    rates = [recipe.schedule(step, 98) for step in range(100 * 98)]
    assert min(rates) > 0 and max(rates) == pytest.approx(1.0)
    assert rates[:980] == sorted(rates[:980]), "the warm-up rises"
    tuned = cls(epochs=10, warmup_epochs=0, learning_rate=0.01)
    assert tuned.schedule(0, 98) == pytest.approx(1.0) and 0 < tuned.schedule(979, 98) < 0.01


def test_t12_prototypes_start_from_training_images():
    recipe = fast("cider", epochs=1, momentum_of_prototypes=1.0)  # they stay where they start
    torch.manual_seed(0)
    one = run(recipe, val=colours(30, seed=1))
    other = run(recipe, val=colours(30, seed=2))
    assert torch.equal(prototypes_of(one.model).prototypes, prototypes_of(other.model).prototypes)
    more = run(recipe, 120)
    assert not torch.equal(prototypes_of(one.model).prototypes, prototypes_of(more.model).prototypes)


def test_t13_kept_noise_is_the_farthest_of_its_own_centre():
    torch.manual_seed(0)
    queues = torch.randn(1, 50, 5) + 2
    recipe = NPOS(queue=50, neighbours=5, boundary=10, centres=2, noise=40, keep_of_noise=10, spread=0.5)
    made = recipe.outliers_of(queues, torch.Generator().manual_seed(4)).view(2, 10, 5)
    draws = torch.Generator().manual_seed(4)
    noise = 0.5 * torch.randn(40, 5, generator=draws)
    unit = nn.functional.normalize(queues[0])
    edge = farthest(unit, unit, 6, 10)
    centres = queues[0][edge[torch.rand(10, generator=draws).argsort()[:2]]]
    for centre, kept in zip(centres, made):
        around = centre + noise
        distance = torch.cdist(nn.functional.normalize(around), unit).sort(1).values[:, 4]
        expected = around[distance.topk(10).indices]
        torch.testing.assert_close(kept.sort(0).values, expected.sort(0).values)


def test_t13_the_released_form_keeps_noise_of_other_distances():
    queues = torch.randn(1, 60, 5, generator=torch.Generator().manual_seed(3)) + 2
    settings = {"queue": 60, "neighbours": 5, "boundary": 10, "noise": 600, "keep_of_noise": 200, "spread": 0.5}
    ours, released = (
        NPOS(**settings, parity=parity).outliers_of(queues, torch.Generator().manual_seed(4)).view(2, 200, 5)
        for parity in (False, True)
    )
    shared = [len({tuple(row) for row in a.tolist()} & {tuple(row) for row in b.tolist()})
              for a, b in zip(ours, released)]  # fmt: skip
    assert 100 < sum(shared) < 170, "as many of the truly farthest third as chance gives: 133 of 400"


class TestT14:
    """NPOS: queues that begin every epoch with zeros."""

    def test_the_released_form_does(self):
        recipe, net, _ = prepared("npos", parity=True)
        recipe.start_epoch(net, 1, None)
        assert not net.fc.queues.features.any() and net.fc.queues.full
        made = recipe.outliers_of(net.fc.queues.features, torch.Generator().manual_seed(0))
        assert made.isfinite().all() and made.abs().max() < 6 * recipe.spread, "noise around zero"

    def test_queues_outlast_epochs_and_hold_no_zeros(self):
        trained = run(fast("npos", epochs=2))
        queues = trained.model.fc.queues
        assert queues.full and int(queues.pushed.sum()) == 2 * 2 * 96
        assert (queues.features.abs().sum(2) > 0).all()

    def test_nothing_is_synthesised_before_every_queue_is_full(self):
        recipe, net, shown = prepared("npos")
        net.fc.queues.pushed.zero_()
        with_weight = recipe.loss(net.eval(), shown).loss
        recipe, net, shown = prepared("npos", weight=0.0)
        net.fc.queues.pushed.zero_()
        torch.testing.assert_close(recipe.loss(net.eval(), shown).loss, with_weight)


def test_t16_pure_clusters_of_outliers_count_more():
    labels, assigned = torch.tensor([0, -1, -1, -1, -1, -1]), torch.tensor([0, 1, 1, 1, 1, 0])
    _, weight = UDG().judged(assigned, labels, known=1)
    assert weight.tolist() == [2.0, 2.0, 2.0, 2.0, 1.0]


def test_t17_an_empty_cluster_takes_no_weight():
    weights = cluster_weights(torch.tensor([0] * 4 + [1] + [2] * 9), 4)
    assert weights[:3].min() > 0.5 and weights[3] == 0 and weights[:3].mean().item() == pytest.approx(1.0)


def test_t18_features_that_do_not_vary_cluster_without_nan():
    from oodscope.training.methods.udg import k_means, whitened

    features = torch.zeros(20, 4)
    features[:, 0] = torch.arange(20.0)
    points = whitened(features)
    assert points.isfinite().all()
    assert set(k_means(points, 2, torch.Generator().manual_seed(0)).tolist()) == {0, 1}


def test_t20_no_batch_is_left_out_and_the_schedule_ends_with_the_last():
    from oodscope.training.loop.sets import Sets
    from oodscope.training.loop.streams import Streams

    recipe = fast("mixoe", epochs=1)
    streams = Streams(recipe, Sets(colours(50), None, colours(20, seed=5)), PREPROCESS, torch.device("cpu"))
    sizes = [len(batch.labels) for batch in streams.batches(0)]
    assert sizes == [13, 13, 12, 12] and recipe.total_steps(streams.steps) == 4
    assert recipe.learning_rate * recipe.schedule(4, 4) == pytest.approx(1e-6)


def test_t21_the_score_of_godin_is_the_paper_s_by_default():
    from oodscope.detectors.registry import create_detector

    assert create_detector("godin").form == "max" and create_detector("godin").grid["epsilon"][0] == 0.0


def test_t22_whether_features_are_scaled_at_test_is_a_setting():
    assert T2FNorm().scale_at_test and not T2FNorm(scale_at_test=False).scale_at_test


def test_t24_assignments_do_not_overflow():
    scores = torch.randn(30, 6) * 1e4
    shares = sinkhorn(scores, 3).exp()
    assert shares.isfinite().all()
    torch.testing.assert_close(shares.sum(1), torch.ones(30))


def test_t26_the_settings_are_named():
    described = MADE["ascood"].describe()
    assert (described["share"], described["weight"], described["spoil"]) == (0.15, 1.0, "shuffle")


@pytest.mark.parametrize("name", ["conf_branch", "vos", "cider", "npos", "palm", "reweightood", "udg"])
def test_t28_what_a_method_remembers_is_in_the_checkpoint(name):
    net = fast(name).prepare(TinyNet(), facts(name))
    kept = {key.split(".")[-1] for key in net.state_dict()}
    memory = {"conf_branch": {"confidence_weight"}, "vos": {"features", "pushed"},
              "npos": {"features", "pushed", "prototypes"},
              "udg": {"of_train", "of_ood", "label_of_ood", "weight_of_ood", "weight_of_cluster"}}  # fmt: skip
    assert memory.get(name, {"prototypes"}) <= kept


def test_t29_augmix_has_the_authors_severity():
    assert AugMix().severity == 3
    smooth = torch.linspace(0, 255, 32)[:, None] * torch.linspace(0.3, 1, 32)
    pixels = smooth.to(torch.uint8).expand(200, 3, 32, 32).contiguous()
    change = [(AugMix(severity=each)(pixels, torch.Generator().manual_seed(0)).float() - pixels.float()).abs()
              .mean(dim=(1, 2, 3)) for each in (1, 3)]  # fmt: skip
    assert change[1].mean() > 1.3 * change[0].mean()
    left = [(each < 1).float().mean().item() for each in change]
    assert left[1] < 0.75 * left[0], "fewer images are left as they were"


@pytest.mark.parametrize("name", ["mcd", "udg", "mixoe", "outlier_exposure"])
def test_t30_outliers_have_the_view_of_known_images(name):
    recipe = fast(name)
    pixels = torch.randint(0, 256, (8, 3, 12, 12), dtype=torch.uint8)
    views = [recipe.view(pixels, torch.Generator().manual_seed(0), role) for role in ("train", "ood")]
    assert torch.equal(*views) and not torch.equal(views[0], pixels)
    from oodscope.training.loop.sets import Sets
    from oodscope.training.loop.streams import Streams

    recipe = fast(name, augment=[{"kind": "crop", "pad": 4}])
    streams = Streams(recipe, Sets(colours(48), None, negatives(40)), PREPROCESS, torch.device("cpu"))
    batch = next(streams.batches(0))
    edges = [(each.scale.to_pixels(each.images) < 1e-3).all(1) for each in (batch, batch.ood)]
    bordered = [each[:, 0].all(1) | each[:, -1].all(1) | each[:, :, 0].all(1) | each[:, :, -1].all(1) for each in edges]
    assert all(each.float().mean() > 0.5 for each in bordered), "both carry the black borders of a crop"


def test_t31_any_number_of_outliers_goes_with_any_number_of_images():
    assert run(fast("mixoe", epochs=1, ood_batch_size=40), 48).history
