"""The remaining oracles of the training methods, to six digits, and the gradient of every term."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from oodscope.activations.activations import Activations
from oodscope.activations.probes.taps import Output
from oodscope.activations.probes.turns import TurnLosses
from oodscope.detectors.registry import create_detector
from oodscope.training.methods.arpl import ARPL, ReciprocalPoints
from oodscope.training.methods.conf_branch import ConfBranch, hinted_loss
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.cutmix import drawn_box
from oodscope.training.methods.logitnorm import LogitNorm
from oodscope.training.methods.mixup import drawn_share, mixed_loss
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.methods.rotpred import turn_loss
from oodscope.training.recipe import Batch
from oodscope.training.registry import create_recipe
from tests.training.test_methods import FACTS, VIEWS, B, D, F, U, W, Y, Z, batch, giving, near
from tests.training.training_toys import TinyNet


def test_cross_entropy_and_its_gradient():
    z = Z.clone().requires_grad_()
    assert cross_entropy(Z, Y, reduction="none").tolist() == near([0.417030, 2.420050])
    CrossEntropy().loss(giving(z), batch()).loss.backward()
    expected = (Z.softmax(1) - torch.eye(3, dtype=D)[Y]) / 2
    torch.testing.assert_close(z.grad, expected)
    assert z.grad.sum(1).abs().max() < 1e-12


def test_confidences():
    c = torch.tensor([0.4, -0.2]).sigmoid()
    assert c.tolist() == near([0.598688, 0.450166])
    hinted, price = hinted_loss(Z, torch.tensor([0.4, -0.2]), Y, torch.tensor([True, False]))
    assert (hinted + 0.1 * price).item() == near(1.389756)
    assert near(0.101010) == 0.1 / 0.99
    at_budget = torch.full((2,), math.log(math.exp(-0.3) / (1 - math.exp(-0.3))))
    assert hinted_loss(Z, at_budget, Y, torch.tensor([True, True]))[1].item() == near(0.3)
    assert math.exp(-0.3) == near(0.740818)


def test_the_score_of_conf_branch_is_minus_the_logit():
    seen = Activations(logits=Z.float(), columns={Output("confidence").column: torch.tensor([[0.4], [-0.2]])})
    assert create_detector("conf_branch").fit(seen).score(seen).tolist() == near([-0.4, 0.2])


def test_the_score_of_rotpred_is_in_nats():
    rotation = torch.tensor([[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 3, 0], [1, 0, 0, 0]], dtype=D)
    losses = turn_loss(rotation)
    assert losses.mean().item() == near(0.741824)
    kl = -math.log(3) - Z[:1].log_softmax(1).mean().item()
    assert (kl, kl / math.log(2)) == (near(0.285084), near(0.411290))
    seen = Activations(logits=Z[:1].float(), columns={TurnLosses().column: losses[None].float()})
    score = create_detector("rotpred").fit(seen).score(seen)
    assert score.tolist() == near([0.456740])
    assert score.item() / math.log(2) == near(0.658936)
    blind = Activations(logits=Z.float(), columns={TurnLosses().column: torch.full((2, 4), math.log(4))})
    expected = math.log(4) + math.log(3) + Z.log_softmax(1).mean(1)
    assert create_detector("rotpred").fit(blind).score(blind).tolist() == near(expected.tolist())


@pytest.mark.parametrize(("classes", "floor"), [(3, 1.008165e-13), (10, 3.232794e-11), (100, 1.212204e-09),
                                                (1000, 1.370158e-08)])  # fmt: skip
def test_the_floor_of_logitnorm(classes, floor):
    best = torch.full((1, classes), -1.0 / (classes - 1), dtype=D)
    best[0, 0] = 1.0
    scaled = LogitNorm().scaled(best)
    loss = math.log1p((classes - 1) * math.exp(float(scaled[0, 1] - scaled[0, 0])))
    assert loss == pytest.approx(floor, rel=1e-4)


def test_logitnorm_at_zero_is_finite_with_a_huge_gradient():
    z = torch.zeros(1, 3, dtype=D, requires_grad=True)
    loss = cross_entropy(LogitNorm().scaled(z), torch.tensor([0]))
    loss.backward()
    assert loss.item() == near(math.log(3))
    assert z.grad.abs().max().item() == pytest.approx(2 / 3 / (1e-7 * 0.04), rel=1e-3)


def test_arpl_radius_grows_and_logits_may_shift():
    layer = ReciprocalPoints(2, 3).double()
    with torch.no_grad():
        layer.points.copy_(torch.tensor([[0.5, 0], [0, 0.5], [-0.5, 0.5]]))
    found = layer(F)
    own = found["distances"].gather(1, Y[:, None])
    assert (own + 1).relu().mean().item() == near(2.875)
    products = F @ layer.points.T
    assert products.tolist() == [near(row) for row in [[0.5, 1, 0.5], [0.25, -0.5, -0.75]]]
    shifted = {**found, "logits": found["logits"] + 3}
    torch.testing.assert_close(ARPL().loss(giving(shifted), batch()).loss, ARPL().loss(giving(found), batch()).loss)


def test_outlier_exposure_on_outliers():
    u = U.clone().requires_grad_()
    terms = U.logsumexp(1) - U.mean(1)
    assert terms.tolist() == near([1.407606, 1.111901])
    assert terms.mean().item() == near(1.259754)
    assert terms.mean().item() - math.log(3) == near(0.161141)
    loss = OutlierExposure().loss(giving(torch.cat([Z, u])), batch(ood=batch())).loss
    loss.backward()
    assert loss.item() + 0.5 * math.log(3) == near(2.048417)
    expected = [[0.165954, -0.044302, -0.121651], [-0.032013, -0.002200, 0.034213]]
    assert (u.grad / 0.5).tolist() == [near(row) for row in expected]


def test_weight_zero_is_another_training_than_no_outliers():
    torch.manual_seed(0)
    net = TinyNet().train()
    shown = Batch(torch.rand(8, 3, 12, 12), torch.arange(8) % 3, torch.arange(8))
    exposed = OutlierExposure(weight=0.0).loss(net, shown._replace(ood=shown._replace(images=torch.rand(8, 3, 12, 12))))
    assert exposed.loss.item() != CrossEntropy().loss(net, shown).loss.item(), "batch norm sees the outliers"


def test_regmixup_is_the_mean_of_what_the_paper_adds():
    mixed = mixed_loss(VIEWS[0], Y, Y.flip(0), torch.tensor(0.7, dtype=D))
    assert CrossEntropy().loss(giving(Z), batch()).loss.item() + mixed.item() == near(2.789179)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta", "share"), [(0.1, 1.0, 0.518), (1.0, 1.0, 0.702)])
def test_clipped_boxes_leave_more_of_the_image_than_was_drawn(alpha, beta, share):
    images = torch.zeros(2, 3, 32, 32)
    left = []
    for seed in range(1500):
        drawn = batch(images)._replace(draws=torch.Generator().manual_seed(seed))
        left.append(1 - drawn_box(drawn, drawn_share(drawn, alpha, beta)).float().mean().item())
    assert np.mean(left) == pytest.approx(share, abs=0.02)
    assert np.mean(np.array(left) < 0.05) < 0.005, "hardly any image is a whole outlier"


def test_t2fnorm_head_at_test_is_affine_in_the_features():
    expected = F @ (W / 0.1).T + B
    assert expected.tolist() == [near(row, 2e-6) for row in [[10.1, 20, 29.9], [5.1, -10, -5.1]]]


TERMS = {
    "rotpred": {"weight": (0.0, 1.0)},
    "arpl": {"weight": (0.0, 1.0)},
    "augmix_jsd": {"weight": (0.0, 12.0)},
    "outlier_exposure": {"weight": (0.0, 0.5)},
    "mixoe": {"weight": (0.0, 1.0)},
    "conf_branch": {"weight": (0.1, 1.0)},
}
"""What turns the second term of a loss up and down."""


@pytest.mark.parametrize("name", TERMS)
def test_the_gradient_of_every_term_reaches_the_backbone(name):
    (field, values), gradients = next(iter(TERMS[name].items())), []
    for value in values:
        torch.manual_seed(0)
        outliers = {"ood_batch_size": 12} if create_recipe(name).ood_batch_size else {}
        recipe = create_recipe(name, **{field: value}, **outliers)
        net = recipe.prepare(TinyNet(), FACTS).eval()
        images = torch.rand(12 * (3 if name == "augmix_jsd" else 1), 3, 12, 12)
        ood = Batch(torch.rand(12, 3, 12, 12), torch.full((12,), -1), torch.arange(12)) if outliers else None
        shown = Batch(images, torch.arange(12) % 3, torch.arange(12), ood=ood, draws=torch.Generator().manual_seed(1))
        recipe.loss(net, shown).loss.backward()
        gradients.append(net.conv.weight.grad.clone())
    assert (gradients[1] - gradients[0]).abs().max() > 1e-5, "the term has no gradient there"


def test_both_terms_of_regmixup_reach_the_backbone():
    torch.manual_seed(0)
    net, recipe = TinyNet().eval(), create_recipe("regmixup")
    images = torch.rand(12, 3, 12, 12)
    shown = Batch(images, torch.arange(12) % 3, torch.arange(12), draws=torch.Generator().manual_seed(1))
    whole = torch.autograd.grad(recipe.loss(net, shown).loss, net.conv.weight)[0]
    clean = torch.autograd.grad(CrossEntropy().loss(net, shown).loss / 2, net.conv.weight)[0]
    assert clean.abs().max() > 1e-5 and (whole - clean).abs().max() > 1e-5


def test_permuted_outliers_have_permuted_losses():
    order = torch.randperm(2)
    terms = [U.logsumexp(1) - U.mean(1), U[order].logsumexp(1) - U[order].mean(1)]
    torch.testing.assert_close(terms[1], terms[0][order])
    losses = [OutlierExposure().loss(giving(torch.cat([Z, each])), batch(ood=batch())).loss for each in (U, U[order])]
    torch.testing.assert_close(losses[0], losses[1])


def test_the_branch_of_conf_branch_starts_at_its_weight():
    net = ConfBranch(weight=0.25).prepare(TinyNet(), FACTS)
    assert net.confidence_weight.item() == 0.25 and isinstance(net.fc.main, nn.Linear)
