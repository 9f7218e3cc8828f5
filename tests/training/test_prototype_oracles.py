"""The oracles of the methods with prototypes (CIDER, NPOS, PALM, ReweightOOD), to six digits."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from oodscope.models.classifier.branches import EMBEDDING
from oodscope.training.methods.cider import CIDER, dispersion, follow
from oodscope.training.methods.npos import NPOS, BoundaryLayer, farthest, real_or_made
from oodscope.training.methods.palm import sinkhorn
from oodscope.training.methods.prototypes import Prototypes
from oodscope.training.methods.reweightood import reweighted
from tests.training.test_methods import D, batch, near
from tests.training.test_synthesis_oracles import CORNERS, PAIRS, rows


class TestPrototypes:
    mu = normalize(torch.tensor([[1, 0], [0, 1], [-1, -1]], dtype=D))
    f = torch.tensor([[0.6, 0.8], [-1, 0]], dtype=D)

    def moved(self, f, momentum=0.95):
        return follow(self.mu, f, torch.tensor([0, 2]), momentum)

    def test_cider(self):
        f = self.f.clone().requires_grad_()
        moved = self.moved(f)
        assert moved.tolist() == rows([[0.999168, 0.040782], [0, 1], [-0.732007, -0.681297]])
        apart = dispersion(moved, 0.1)
        assert apart.item() == near(-2.565998)
        apart.backward()
        assert f.grad.tolist() == rows([[-0.012421, 0.304308], [-0.034240, 0.036788]])
        layer = Prototypes(2, 3, 2, 0.1).double()
        layer.prototypes.copy_(self.mu)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = layer

        for compactness, spread, expected in ((2, 1, 0.077567), (1 / (0.1 / 0.07), 0, 0.925248), (1, 0, 1.321782)):
            layer.prototypes.copy_(self.mu)
            recipe = CIDER(compactness=compactness, dispersion=spread)
            shown = batch(labels=torch.tensor([0, 2]))
            assert recipe.embedded_loss(Net(), self.f, shown).loss.item() == near(expected)
        torch.testing.assert_close(layer.prototypes, self.moved(self.f))

    def test_dispersion_reaches_embeddings_through_the_average_alone(self):
        f = self.f.clone().requires_grad_()
        dispersion(self.moved(f, momentum=1.0), 0.1).backward()
        assert f.grad.abs().max() < 1e-12
        angles = torch.arange(3, dtype=D) * 2 * math.pi / 3
        spread = torch.stack([angles.cos(), angles.sin()], dim=1)
        assert dispersion(spread, 0.1).item() == near(-5.0)

    def test_rounds_of_all_classes_are_the_rows_one_by_one(self):
        torch.manual_seed(0)
        f, labels = normalize(torch.randn(20, 4, dtype=D)), torch.randint(0, 3, (20,))
        prototypes = start = normalize(torch.randn(3, 4, dtype=D))
        for row, label in zip(f, labels):
            prototypes = prototypes.clone()
            prototypes[label] = normalize(0.8 * prototypes[label] + 0.2 * row, dim=0)
        torch.testing.assert_close(follow(start, f, labels, 0.8), prototypes)

    def test_npos(self):
        apart = real_or_made(torch.tensor([1, -0.5], dtype=D), torch.tensor([0.2, -2, 0.3], dtype=D))
        assert apart.item() == near(0.613352)
        layer = BoundaryLayer(2, 3, 2, 0.1, 4).double()
        layer.prototypes.copy_(self.mu)
        recipe = NPOS(queue=4, neighbours=2, boundary=2, centres=1, noise=3, keep_of_noise=1)
        step = recipe.embedded_loss(nn.Sequential(layer), self.f, batch(labels=torch.tensor([0, 2])))
        assert (step.loss + recipe.weight * apart).item() == near(0.100119)

    def test_palm(self):
        f = torch.tensor([[1, 0], [0.6, 0.8], [0, 1]], dtype=D)
        scores = f @ normalize(torch.tensor([[1, 0.2], [0.2, 1]], dtype=D)).T / 0.05
        shares = sinkhorn(scores, 3).exp()
        assert shares.tolist() == rows([[1, 0], [0.145049, 0.854951], [0.000001, 0.999999]])
        assert shares.sum(0).tolist() == near([1.145050, 1.854950])
        assert sinkhorn(scores, 2000).exp().sum(0).tolist() == near([1.5, 1.5], 1e-3)
        assert sinkhorn(1000 * scores, 3).isfinite().all(), "logarithms do not overflow"

    def test_reweightood(self):
        similar = CORNERS @ CORNERS.T
        assert (1 - 2 * similar[[0, 1], [2, 3]]).sigmoid().tolist() == near([0.354344, 0.930862])
        assert (5 * similar[[0, 0], [1, 3]] - 4).sigmoid().tolist() == near([0.017986, 0.268941])
        assert reweighted(CORNERS, PAIRS, 0.1).item() == near(9.935344)
        assert reweighted(CORNERS[:2], torch.tensor([0, 0]), 0.1).isfinite(), "a batch without pairs of two classes"


def test_kept_noise_of_npos_is_farther_than_what_is_dropped():
    torch.manual_seed(0)
    bank, points = normalize(torch.randn(60, 6)), normalize(torch.randn(40, 6))
    kept = farthest(points, bank, 7, 15)
    distance = torch.cdist(points.double(), bank.double()).sort(1).values[:, 6]
    dropped = np.setdiff1d(np.arange(40), kept.numpy())
    assert distance[kept].min() >= distance[dropped].max()
    recipe = NPOS(queue=60, neighbours=7, boundary=10, noise=30, keep_of_noise=9)
    made = recipe.outliers_of(torch.randn(3, 60, 6) + 3, torch.Generator().manual_seed(0))
    assert made.shape == (3 * 2 * 9, 6)


def test_embeddings_are_unit_vectors_and_logits_their_products():
    torch.manual_seed(0)
    single, several = Prototypes(6, 3, 4, 0.1), Prototypes(6, 3, 4, 0.1, each=2)
    h = torch.randn(5, 6)
    for layer in (single, several):
        output = layer(h)
        torch.testing.assert_close(output[EMBEDDING].norm(dim=1), torch.ones(5))
    torch.testing.assert_close(single(h)["logits"], single(h)[EMBEDDING] @ single.prototypes.T / 0.1)
    similar = several(h)[EMBEDDING] @ several.prototypes.T / 0.1
    torch.testing.assert_close(several(h)["logits"], torch.stack([similar[:, c::3].logsumexp(1) for c in range(3)], 1))
