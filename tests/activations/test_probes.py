"""Each probe against the same thing done by hand, image by image."""

import numpy as np
import pytest
import torch

from oodscope.activations.probes.copies import CorruptedScores, NoisyScores, PushedScores
from oodscope.activations.probes.perturbation import PerturbedFeatures, PerturbedLogits, SteppedMaps, pixel_unit
from oodscope.activations.probes.rank import RankReducedLogits as Rank
from oodscope.activations.probes.taps import GramSums, MemberLogits, PooledMaps
from oodscope.activations.store.store import ActivationStore
from oodscope.data.addressed import Draws, content_keys
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.preprocess import Preprocess
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.zoo.zoo import create_model
from tests.tiny import ForwardCounter, imageset, network

TRANSFORM = Preprocess(size=8, std=(0.1, 0.2, 0.4))


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    model, _ = create_model("resnet18_32", num_classes=4)
    return Classifier(model.eval(), Preprocess(size=16), device="cpu")


def extract(tmp_path, classifier, probe, count=6):
    images = imageset("a", count, 0)
    found = ActivationStore(tmp_path).extract(classifier, images, probes=[probe])
    return found[probe.column], classifier.prepare(images.images(range(count)))


def maps_of(classifier, x, stage):
    model = classifier.model
    for layer in [model.conv1, model.bn1, model.relu, model.layer1, model.layer2, model.layer3, model.layer4][
        : stage + 4
    ]:
        x = layer(x)
    return x


def test_the_single_step_moves_one_value(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    found, inputs = extract(tmp_path, clf, PerturbedLogits(10.0, 0.01, single=True))
    for row, x in enumerate(inputs):
        x = x[None].clone().requires_grad_(True)
        scaled = clf.model(x) / 10.0
        torch.nn.functional.cross_entropy(scaled, scaled.argmax(dim=1)).backward()
        channel, i, j = np.unravel_index(int(x.grad[0].abs().argmax()), x.grad[0].shape)
        moved = x.detach().clone()
        moved[0, channel, i, j] -= 0.01 / (0.1, 0.2, 0.4)[channel] * x.grad[0, channel, i, j].sign()
        assert torch.allclose(found[row], clf.model(moved)[0], atol=1e-6)


def test_perturbed_features_move_the_least_important_values(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    found, inputs = extract(tmp_path, clf, PerturbedFeatures(0.25, 0.5))
    for row, x in enumerate(inputs):
        x = x[None].clone().requires_grad_(True)
        clf.model(x).max().backward()
        weak = x.grad.abs().flatten().argsort()[: round(0.25 * x.numel())]
        moved = x.detach().clone().flatten()
        moved[weak] += 0.5 * x.grad.flatten()[weak].sign()
        with torch.no_grad():
            expected = clf.model.pool(torch.relu(clf.model.conv(moved.view_as(x)))).flatten()
        assert torch.allclose(found[row], expected, atol=1e-5)


def test_pooled_maps_of_every_stage(tmp_path, resnet):
    found, inputs = extract(tmp_path, resnet, PooledMaps())
    assert found.shape == (6, 4, 512)
    with torch.no_grad():
        for stage, width in enumerate((64, 128, 256, 512)):
            expected = maps_of(resnet, inputs, stage).mean(dim=(2, 3))
            assert torch.allclose(found[:, stage, :width], expected, atol=1e-5)
            assert not found[:, stage, width:].any()


def test_gram_sums_are_the_papers(tmp_path, resnet):
    found, inputs = extract(tmp_path, resnet, GramSums(3), count=2)
    with torch.no_grad():
        for row in range(2):
            F = maps_of(resnet, inputs[row : row + 1], 0)[0].flatten(1).double().relu()
            for power in (1, 2, 3):
                G = ((F**power) @ (F**power).T) ** (1 / power)
                block = found[row, 0, (power - 1) * 64 : power * 64].double()
                assert torch.allclose(block, G.sum(dim=1), rtol=1e-4)


def test_gram_sums_do_not_overflow():
    huge = torch.full((1, 3, 2, 2), 1e15)
    assert torch.isfinite(GramSums(5).reduce(huge)).all()
    assert not GramSums(5).reduce(torch.zeros(1, 3, 2, 2)).any()


def test_rank_reduced_logits_against_a_singular_value_decomposition(tmp_path, resnet):
    found, inputs = extract(tmp_path, resnet, Rank(), count=3)
    model = resnet.model
    with torch.no_grad():
        for row in range(3):
            for position, stage in enumerate((3, 2)):
                maps = maps_of(resnet, inputs[row : row + 1], stage)
                U, S, V = torch.linalg.svd(maps[0].flatten(1).double(), full_matrices=False)
                S[0] = 0
                x = (U @ torch.diag(S) @ V).float().view_as(maps)
                x = model.layer4(x) if stage == 2 else x
                assert torch.allclose(found[row, position], model.fc(model.avgpool(x).flatten(1))[0], atol=1e-4)


def test_stepped_maps_move_each_stage_to_its_nearest_class(tmp_path, resnet):
    torch.manual_seed(1)
    origin, whiten, means = torch.rand(4, 512), torch.randn(4, 512, 512) / 22, torch.randn(4, 4, 512)
    probe = SteppedMaps(origin, whiten, means, 0.01)
    found, inputs = extract(tmp_path, resnet, probe, count=2)
    for stage, width in enumerate((64, 128, 256, 512)):
        x = inputs.clone().requires_grad_(True)
        pooled = torch.nn.functional.pad(maps_of(resnet, x, stage).mean(dim=(2, 3)), (0, 512 - width))
        to_class = ((pooled - origin[stage]) @ whiten[stage])[:, None] - means[stage]
        to_class.square().sum(dim=2).amin(dim=1).sum().backward()
        with torch.no_grad():
            moved = inputs - 0.01 / 0.5 * x.grad.sign()
            expected = maps_of(resnet, moved, stage).mean(dim=(2, 3))
        # a gradient of almost nothing may change its sign between two ways to compute it
        assert (found[:, stage, :width] - expected).abs().mean() < 1e-3 * expected.std()


def test_member_logits(tmp_path):
    clf = Classifier(Ensemble([network(seed) for seed in range(3)]), TRANSFORM, device="cpu")
    found, inputs = extract(tmp_path, clf, MemberLogits())
    assert torch.allclose(found, torch.stack([network(seed)(inputs) for seed in range(3)], dim=1), atol=1e-6)


@pytest.mark.parametrize("probe", [PooledMaps(), GramSums(2)])
def test_a_tap_costs_nothing_beside_the_plain_pass_and_one_pass_alone(tmp_path, resnet, probe):
    resnet.anatomy, resnet.head  # noqa: B018  # found before passes are counted
    counter, store = ForwardCounter(resnet.model), ActivationStore(tmp_path)
    images = imageset("a", 10, 0)
    store.extract(resnet, images, probes=[probe])
    assert counter.images == store.forwarded == 10
    other = imageset("b", 10, 1)
    store.extract(resnet, other)
    store.extract(resnet, other, probes=[probe])
    assert counter.images == store.forwarded == 30
    counter.handles[0].remove()


def test_probes_share_the_passes_of_equal_name(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    clf.anatomy, clf.head  # noqa: B018
    counter, store = ForwardCounter(clf.model), ActivationStore(tmp_path)
    probes = [create_detector(name).probes[0] for name in ("odin", "iodin")] + [PerturbedFeatures(), PooledMaps()]
    store.extract(clf, imageset("a", 10, 0), probes=probes)
    # one recorded for all gradients, plain and with the tap too; one each for odin, iodin and the perturbed features
    assert counter.images == store.forwarded == 10 * 4
    # one gradient for odin and iodin, one for the perturbed features
    assert counter.backwards == 10 * 2


def test_the_unit_of_a_pixel_is_read_off_the_preprocessing_once(tmp_path, monkeypatch):
    """A copy to the device waits for all work before it: one per batch would leave a GPU idle."""
    prepared, plain = [], Classifier.prepare
    monkeypatch.setattr(Classifier, "prepare", lambda self, images: prepared.append(len(images)) or plain(self, images))
    clf = Classifier(network(), Preprocess(size=8, std=(0.1, 0.2, 0.4)), device="cpu")
    other = Classifier(network(), Preprocess(size=8), device="cpu")
    for _ in range(3):
        assert torch.allclose(pixel_unit(clf).flatten(), 1 / torch.tensor([0.1, 0.2, 0.4]))
    assert prepared == [2]
    assert torch.allclose(pixel_unit(other), torch.tensor(2.0))


def largest_logit(logits):
    return -logits.amax(dim=1).double()


def test_a_walk_raises_the_score_step_by_step(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    found, inputs = extract(tmp_path, clf, PushedScores("mls", largest_logit, 0.02, 3))
    assert found.shape == (6, 4)
    for row, x in enumerate(inputs):
        x = x[None]
        for step in range(4):
            leaf = x.clone().requires_grad_(True)
            score = -clf.model(leaf).max()
            score.backward()
            assert float(found[row, step]) == pytest.approx(float(score), abs=1e-5)
            x = leaf.detach() + 0.02 * leaf.grad.sign()


def test_clipped_walks_stay_among_the_pixels(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    far, near = (
        extract(tmp_path / str(clip), clf, PushedScores("mls", largest_logit, 50.0, 1, clip))[0]
        for clip in (False, True)
    )
    assert far[:, 0].equal(near[:, 0])
    assert bool((far[:, 1] != near[:, 1]).all())


def test_walks_of_one_score_share_their_passes(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    short, long = (PushedScores("mls", largest_logit, 0.02, steps) for steps in (1, 3))
    assert clf.head is not None  # found by passes of its own
    counter = ForwardCounter(clf.model)
    found = ActivationStore(tmp_path).extract(clf, imageset("a", 6, 0), probes=[short, long])
    # the recorded pass, which is the plain one, and three steps
    assert counter.images == 6 * len(short.forwards | long.forwards) == 6 * 4
    assert found[short.column].equal(found[long.column][:, :2])
    assert counter.backwards == 6 * len(short.backwards | long.backwards) == 6 * 3


def test_noise_depends_on_the_image_alone(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    probe = NoisyScores("mls", largest_logit, 3, 0.1, seed=5)
    found, inputs = extract(tmp_path / "six", clf, probe)
    images = imageset("a", 6, 0).take([4, 1], "b")
    some = ActivationStore(tmp_path / "two").extract(clf, images, probes=[probe], batch_size=1)[probe.column]
    assert torch.allclose(some, found[[4, 1]], atol=1e-6)
    noise = [Draws(5, "noisy scores", content_keys(inputs)).normal(f"copy {n}", 3, 8, 8).float() for n in range(3)]
    with torch.no_grad():
        expected = torch.stack([-clf.model(inputs + 0.1 * each).amax(dim=1) for each in noise], dim=1)
    assert torch.allclose(found, expected, atol=1e-5)
    assert float(torch.stack(noise).std()) == pytest.approx(1, abs=0.05)


def test_corrupted_scores_are_those_of_corrupted_pixels(tmp_path):
    clf = Classifier(network(), TRANSFORM, device="cpu")
    names = ("gaussian_noise", "brightness")
    found, inputs = extract(tmp_path, clf, CorruptedScores("mls", largest_logit, names, 2))
    mean, std = (torch.tensor(each)[:, None, None] for each in (TRANSFORM.mean, TRANSFORM.std))
    pixels = (inputs * std + mean).clamp(0, 1)
    for place, name in enumerate(names):
        copies = corrupt_batch(pixels, name, 2, keys=content_keys(pixels).numpy())
        with torch.no_grad():
            expected = -clf.model((copies - mean) / std).amax(dim=1)
        assert torch.allclose(found[:, place], expected, atol=1e-4)
