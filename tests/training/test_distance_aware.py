"""Contrastive and distance-aware methods: oracles to six digits and what they promise."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Passes
from oodscope.activations.probes.turns import TurnedViews
from oodscope.base.errors import DetectorError
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.classifier import Classifier
from oodscope.training.loop.lars import LARS
from oodscope.training.methods.distance_aware import (
    GaussianProcessLayer,
    SoftSpectralConv,
    SoftSpectralNorm,
    mean_field,
    orthogonal_rows,
    predictive_variance,
    weighted_features,
)
from oodscope.training.methods.simclr import SSD, SimCLR, SupCon
from tests.training.every_method import fast, prepared, run
from tests.training.training_toys import PREPROCESS, colours

D = torch.float64


def near(value, digits=1e-6):
    return pytest.approx(value, abs=digits, rel=digits)


class TestContrast:
    views = torch.eye(2, dtype=D).repeat(2, 1)

    def test_oracles(self):
        labels = torch.tensor([0, 0])
        assert SimCLR().contrast(self.views, labels).item() == near(0.239545)
        assert SSD().contrast(self.views, labels).item() == near(1.711034)
        equal = normalize(torch.ones(4, 2, dtype=D))
        assert SimCLR().contrast(equal, labels).item() == near(1.098612)

    def test_supcon_is_simclr_where_every_image_is_a_class(self):
        v = normalize(torch.randn(8, 3, dtype=D))
        own = torch.arange(4)
        expected = SimCLR(temperature=0.1).contrast(v, torch.zeros(4, dtype=torch.long))
        assert SupCon().contrast(v, own).item() == near(expected.item())
        together = SupCon().contrast(v, torch.tensor([0, 0, 1, 1]))
        assert together.item() != near(expected.item(), 1e-3)

    @pytest.mark.parametrize("name", ["simclr", "ssd"])
    def test_labels_move_no_feature(self, name):
        gradients = []
        for shift in (0, 1):
            recipe, net, shown = prepared(name)
            recipe.loss(net, shown._replace(labels=(shown.labels + shift) % 3)).loss.backward()
            gradients.append((net.conv.weight.grad, net.fc.main.weight.grad))
        torch.testing.assert_close(gradients[0][0], gradients[1][0])
        assert not torch.allclose(gradients[0][1], gradients[1][1])


class TestUnlabelledCSI:
    def test_score_oracle(self):
        """Two turns twice: f = (3, 4), (0, 2), axes, turn logits and weights of the specification."""
        detector = create_detector("csi_unlabelled")
        axes = torch.tensor([[[1.0, 0], [1, 0]], [[0, 1], [0.6, 0.8]]], dtype=D)  # row by turn
        detector.bank_ = axes.repeat(1, 2, 1)
        detector.weights_ = torch.tensor([[0.2, 0.5], [0.5, 1.0]], dtype=D).repeat(1, 2)
        row = np.array([[[3, 4, 2], [0, 2, 1.5]]], np.float32).repeat(2, axis=0).reshape(1, 4, 3)
        seen = Activations(
            logits=np.zeros((1, 2), np.float32), features=np.zeros((1, 2), np.float32), labels=np.zeros(1, np.int64),
            columns={detector.probes[0].column: row},
        )  # fmt: skip
        assert detector.score(seen).item() == near(-2.05, 1e-5)

    def test_a_network_that_knows_no_turns_is_refused(self):
        train = Activations(
            logits=np.zeros((3, 2), np.float32), features=np.zeros((3, 2), np.float32), labels=np.zeros(3, np.int64),
            columns={create_detector("csi_unlabelled").probes[0].column: -np.ones((3, 4, 3), np.float32)},
        )  # fmt: skip
        with pytest.raises(DetectorError, match="does not recognise turns"):
            create_detector("csi_unlabelled").fit(train)

    def test_a_mirrored_view_keeps_its_turn(self):
        """Images that are bright above, and a network that names the bright side: in every view it is the turn's own.

        Mirrored after the turn, a quarter turn to the left would be one to the right.
        """

        class BrightSide(nn.Module):
            def forward(self, images):
                above, left = images[:, :, :4].mean((1, 2, 3)), images[:, :, :, :4].mean((1, 2, 3))
                below, right = images[:, :, 4:].mean((1, 2, 3)), images[:, :, :, 4:].mean((1, 2, 3))
                turns = torch.stack([above, left, below, right], dim=1)
                return {"logits": turns, "projection": turns[:, :2], "rotation": turns}

        images = torch.zeros(2, 3, 8, 8)
        images[:, :, :4] = 1.0
        plain = oods.Preprocess(size=8, mean=(0.0,) * 3, std=(1.0,) * 3)
        probe = TurnedViews(views=12)
        own = probe(Passes(Classifier(BrightSide(), plain, device="cpu"), images))[:, :, -1]
        assert (own > 0.75).all(), "a view in the opposite turn has nearly nothing on its side"
        for turn in range(4):
            seen = torch.stack([BrightSide()(each)["rotation"] for each in probe._shown(images, turn)])
            assert (seen.argmax(dim=2) == turn).all()

    def test_only_the_same_image_in_the_same_turn_attracts(self):
        recipe, net, shown = prepared("csi_unlabelled")
        count = len(shown.labels)
        own = torch.eye(4 * count).view(4, count, -1)  # of each turn and image a direction of its own
        projection = torch.cat([own, own], dim=1).flatten(0, 1)
        turns = torch.arange(4).repeat_interleave(2 * count)
        output = {"logits": torch.zeros(8 * count, 3), "projection": projection,
                  "rotation": 60.0 * torch.eye(4)[turns]}  # fmt: skip

        class Fixed(nn.Module):
            def forward(self, images):
                return output

        expected = -math.log(math.exp(2) / (math.exp(2) + 8 * count - 2)) + math.log(3)
        assert recipe.loss(Fixed(), shown).loss.item() == near(expected, 1e-4)

    def test_lars_takes_steps_in_proportion_to_the_weights(self):
        weight, bias = nn.Parameter(torch.tensor([[3.0, 4.0]])), nn.Parameter(torch.tensor([2.0]))
        weight.grad, bias.grad = torch.tensor([[0.0, 10.0]]), torch.tensor([1.0])
        LARS([weight, bias], lr=1.0, momentum=0.9, weight_decay=0.1, trust=0.001).step()
        ratio = 0.001 * 5 / (10 + 0.1 * 5)
        assert weight.tolist() == [near([3 - ratio * 0.3, 4 - ratio * 10.4])] and bias.tolist() == near([1.0])


class TestSpectral:
    def test_the_norm_is_that_of_the_operator(self):
        conv = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        with torch.no_grad():
            conv.weight.copy_(torch.tensor([[0.0, 1, 0], [1, 4, 1], [0, 1, 0]]).view(1, 1, 3, 3))
        torch.manual_seed(0)
        layer = SoftSpectralConv(conv, 3.0, 8, 8).train()
        for _ in range(300):
            found = layer.stretch()
        assert found.item() == near(7.758770, 1e-5) and found.item() == near(4 + 4 * math.cos(math.pi / 9), 1e-5)
        image = torch.rand(1, 1, 8, 8)
        torch.testing.assert_close(layer.eval()(image), conv(image) * 3 / found)
        kernel = torch.linalg.matrix_norm(conv.weight.view(3, 3)).item()
        assert kernel == near(4.472136), "the reshaped kernel's norm: 42 % too small"

    @pytest.mark.parametrize(("sigma", "divisor"), [(5.0, 5 / 3), (2.0, 1.0)])
    def test_only_what_stretches_too_much_is_bounded(self, sigma, divisor):
        conv = nn.Conv2d(2, 2, 1, bias=False)
        with torch.no_grad():
            conv.weight.copy_(sigma * torch.eye(2).view(2, 2, 1, 1))
        layer, image = SoftSpectralConv(conv, 3.0, 4, 4).train(), torch.rand(1, 2, 4, 4)
        torch.testing.assert_close(layer(image), sigma * image / divisor)
        norm = nn.BatchNorm2d(2)
        with torch.no_grad():
            norm.weight.fill_(sigma)
        made = SoftSpectralNorm(norm, 3.0).eval()(image)
        torch.testing.assert_close(made, sigma * image / divisor, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("stride", [1, 2])
    def test_strides_have_their_adjoint(self, stride):
        torch.manual_seed(0)
        conv = nn.Conv2d(2, 3, 3, stride=stride, padding=1, bias=False)
        layer = SoftSpectralConv(conv, 1.0, 7, 6).train()
        for _ in range(300):
            found = layer.stretch()
        rows = [conv(each.view(1, 2, 7, 6)).flatten() for each in torch.eye(84)]
        assert found.item() == near(torch.linalg.matrix_norm(torch.stack(rows), 2).item(), 1e-4)

    def test_evaluation_leaves_the_vectors_alone(self):
        layer = SoftSpectralConv(nn.Conv2d(3, 4, 3), 1.0, 6, 6).eval()
        before = layer.image.clone()
        layer(torch.rand(2, 3, 6, 6))
        assert torch.equal(layer.image, before)


class TestGaussianProcess:
    phi = torch.tensor([[1, 0.5], [-0.3, 0.8]], dtype=D)
    new = torch.tensor([[1, 0.5], [2, -2]], dtype=D)

    def covariance(self):
        return torch.linalg.inv(torch.eye(2, dtype=D) + self.phi.T @ self.phi)

    def test_covariance_of_two_points(self):
        found = self.covariance()
        expected = [[0.486800, -0.066967], [-0.066967, 0.538313]]
        assert [row.tolist() for row in found] == [near(row) for row in expected]
        variance = predictive_variance(self.new, found, 1.0)
        assert variance.tolist() == near([0.554411, 4.636188])
        gram, across = self.phi @ self.phi.T, self.new @ self.phi.T
        dual = self.new.square().sum(1) - (across @ torch.linalg.inv(gram + torch.eye(2)) * across).sum(1)
        torch.testing.assert_close(dual, variance)

    def test_images_may_count_by_their_curvature(self):
        beta = torch.tensor([[1, -1], [0.5, 0.5], [-1, 0]], dtype=D)
        phi = weighted_features(self.phi, self.phi @ beta.T)
        covariance = torch.linalg.inv(torch.eye(2, dtype=D) + phi.T @ phi)
        assert predictive_variance(self.new, covariance, 1.0).tolist() == near([0.951295, 6.775294])

    @pytest.mark.parametrize(("factor", "u"), [(math.pi / 8, 0.198318), (25.0, 0.477799), (0.0, 0.051078)])
    def test_mean_field(self, factor, u):
        beta = torch.tensor([[1, -1], [0.5, 0.5], [-1, 0]], dtype=D)
        raw = self.new[1:] @ beta.T
        z = mean_field(raw, predictive_variance(self.new[1:], self.covariance(), 1.0), factor)
        if factor == math.pi / 8:
            assert z[0].tolist() == near([2.381701, 0, -1.190850])
        seen = Activations(
            logits=z.float().numpy(), features=np.zeros((1, 2), np.float32), labels=np.zeros(1, np.int64),
            columns={"output(variance)": np.ones((1, 1), np.float32)},
        )  # fmt: skip
        assert create_detector("dempster_shafer").score(seen).sigmoid().item() == near(u, 1e-5)

    def test_random_features_approximate_the_kernel(self):
        torch.manual_seed(0)
        directions, phases = orthogonal_rows(20_000, 4), 2 * math.pi * torch.rand(20_000)
        x = 0.5 * torch.randn(2, 4)
        phi = math.sqrt(2 / 20_000) * torch.cos(x @ directions.T + phases)
        expected = math.exp(-(x[0] - x[1]).square().sum().item() / 2)
        assert (phi[0] @ phi[1]).item() == pytest.approx(expected, abs=0.02)

    def test_the_covariance_is_that_of_the_final_weights_and_any_order(self):
        trained = run(fast("sngp"))
        layer = trained.model.fc
        assert isinstance(layer, GaussianProcessLayer)
        images = torch.from_numpy(np.stack(colours(96).images(range(96)))).permute(0, 3, 1, 2).float() / 255
        mean, std = (torch.tensor(each).view(1, 3, 1, 1) for each in (PREPROCESS.mean, PREPROCESS.std))
        with torch.no_grad():
            phi = layer.random_features(trained.model.eval().features((images - mean) / std)).double()
            expected = torch.linalg.inv(torch.eye(64, dtype=D) + phi.flip(0).T @ phi.flip(0))
        torch.testing.assert_close(layer.covariance.double(), expected, rtol=1e-3, atol=1e-5)
        sure = run(fast("sngp", curvature=True)).model.fc
        torch.testing.assert_close(sure.linear.weight, layer.linear.weight)
        assert (sure.covariance.diagonal() > layer.covariance.diagonal()).all(), "p(1 - p) is below 1"

    def test_far_images_have_more_variance_and_smaller_logits(self):
        trained = run(fast("sngp", epochs=6))
        layer = trained.model.eval().fc
        with torch.no_grad():
            near_, far = (trained.model.features(s * torch.randn(50, 3, 12, 12)) for s in (1.0, 30.0))
            assert layer(far)["variance"].mean() > layer(near_)["variance"].mean()


def test_ddu_density():
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(4000, 2)), rng.normal(size=(4000, 2))])
    # exactly the moments of the oracle
    for part in (slice(0, 4000), slice(4000, 8000)):
        centred = features[part] - features[part].mean(0)
        factor = np.linalg.cholesky(np.cov(centred.T, bias=True))
        features[part] = centred @ np.linalg.inv(factor).T + (0 if part.start == 0 else [3, 0])
    labels = np.repeat([0, 1], 4000)
    logits = np.zeros((8000, 2), np.float32)
    train = Activations(logits=logits, features=features.astype(np.float32), labels=labels)
    test = Activations(logits=logits[:1], features=np.array([[1, 1]], np.float32), labels=np.zeros(1, np.int64))
    detector = create_detector("gmm_ddu").fit(train)
    assert -detector.score(test).item() == near(-3.329611, 1e-4)


def test_ssd_distances():
    rng = np.random.default_rng(0)
    features = np.abs(rng.normal(size=(500, 7))).astype(np.float32)
    features[:, 6] = 0  # a dead unit
    train = Activations(logits=np.zeros((500, 2), np.float32), features=features, labels=np.zeros(500, np.int64))
    scores = create_detector("ssd").fit(train).score(train)
    assert scores.mean().item() == near(6.0, 1e-4), "the mean squared distance of the training set is its rank"
    z = features[:, :6] / np.linalg.norm(features, axis=1, keepdims=True)
    m, s = z.mean(0), z.std(0)
    standard = (z - m) / s - m
    expected = np.einsum("nd,de,ne->n", standard, np.linalg.inv(np.cov(((z - m) / s).T, bias=True)), standard)
    twice = create_detector("ssd", parity=True).fit(train).score(train)
    np.testing.assert_allclose(twice.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "own"), [("sngp", "dempster_shafer"), ("ddu", "gmm_ddu"), ("ssd", "ssd")])
def test_own_scores_apply_after_training(name, own):
    trained = run(fast(name))
    classifier = Classifier(trained.model, PREPROCESS, device="cpu", name=name)
    dark = 255 - np.stack(colours(40, seed=3).images(range(40)))
    bench = oods.Benchmark(
        "b", "1", transform=PREPROCESS, id_train=colours(96, name="train"), id_test=colours(40, seed=2, name="test"),
        far=(oods.ImageSet.from_arrays("dark", dark),),
    )  # fmt: skip
    result = oods.evaluate(classifier, bench, [own, "knn"])
    assert set(result.scores.detectors) == {own, "knn"}
    assert np.isfinite(result.scores.scores(own, set="dark")).all()
