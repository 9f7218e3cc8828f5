"""Mutual information of an ensemble in torch: against NumPy in float64, at its edges, and with a gradient."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import DataError, ModelError
from oodscope.data.preprocess import Preprocess
from oodscope.generation.distances.semantic import EnsembleInformation, information
from oodscope.metrics.generated.information import mutual_information
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.small.cnn import small_cnn
from tests import tiny
from tests.examples import examples


def slow_information(probabilities):
    """Entropy of the mean minus mean entropy, one number at a time."""

    def entropy(values):
        return -sum(p * math.log(p) for p in values if p > 0)

    members, images, classes = probabilities.shape
    found = []
    for image in range(images):
        mean = [sum(probabilities[t, image, c] for t in range(members)) / members for c in range(classes)]
        found.append(entropy(mean) - sum(entropy(probabilities[t, image]) for t in range(members)) / members)
    return np.array(found)


def softmax(logits):
    return torch.from_numpy(logits).softmax(dim=2).numpy()


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 6), st.sampled_from([0.1, 1.0, 20.0, 300.0]))
@examples(60)
def test_agrees_with_slow_and_numpy_references(seed, members, classes, scale):
    logits = np.random.default_rng(seed).normal(size=(members, 4, classes)) * scale
    found = information(torch.from_numpy(logits)).numpy()
    assert found == pytest.approx(slow_information(softmax(logits)), abs=1e-9)
    assert found == pytest.approx(mutual_information(softmax(logits)), abs=1e-9)
    assert (found >= -1e-12).all() and (found <= math.log(min(members, classes)) + 1e-12).all()


def test_oracles():
    certain = torch.tensor([[[1e4, 0.0]], [[0.0, 1e4]]])
    assert float(information(certain)) == pytest.approx(math.log(2), abs=1e-12)
    three = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]], dtype=torch.float64).log().unsqueeze(1)
    assert float(information(three)) == pytest.approx(0.136692, abs=1e-6)
    same = torch.randn(1, 5, 7).expand(4, 5, 7)
    assert information(same).abs().max() < 1e-12
    dissent = torch.zeros(6, 3, 4)
    for row, dissenters in enumerate((1, 2, 3)):
        dissent[:dissenters, row, 0] = 1e4
        dissent[dissenters:, row, 1] = 1e4
    assert information(dissent).tolist() == pytest.approx([0.450561, 0.636514, 0.693147], abs=1e-6)


@pytest.mark.parametrize("large", [50.0, 1e4, 1e8, math.inf])
def test_gradient_is_finite_where_members_are_certain(large):
    logits = torch.zeros(2, 3, 4)
    logits[0, :, 1:], logits[1, :, :3] = -large, -large
    logits.requires_grad_(True)
    found = information(logits)
    found.sum().backward()
    assert found.tolist() == pytest.approx([math.log(2)] * 3)
    assert logits.grad.isfinite().all()


def test_members_see_what_their_preprocessing_makes_of_pixels():
    transforms = [Preprocess(size=8), Preprocess(size=8, mean=(0.1, 0.2, 0.3), std=(0.3, 0.4, 0.6))]
    members = [Classifier(tiny.network(seed), each, device="cpu") for seed, each in enumerate(transforms)]
    images = tiny.imageset("some", 6, 1)
    pixels = torch.from_numpy(np.stack(images.images(range(6)))).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = torch.stack([each.forward(each.prepare(images.pictures(range(6)))).logits for each in members])
    semantic = EnsembleInformation(members)
    with torch.no_grad():
        assert torch.allclose(semantic.logits(pixels.float() / 255), expected, atol=1e-5)
    assert semantic.of_pixels(pixels, batch_size=4) == pytest.approx(information(expected).numpy(), abs=1e-6)


def test_gradients_reach_the_images_and_not_the_weights():
    semantic = EnsembleInformation([tiny.classifier(0), tiny.classifier(1)])
    images = torch.rand(3, 3, 8, 8, requires_grad=True)
    semantic(images).sum().backward()
    assert images.grad.abs().sum() > 0
    assert all(parameter.grad is None for each in semantic.members for parameter in each.model.parameters())


def test_other_sizes_and_colours_are_fitted():
    coloured = EnsembleInformation([tiny.classifier(0), tiny.classifier(1)])
    grey = torch.rand(2, 1, 8, 8)
    assert torch.equal(coloured.logits(grey), coloured.logits(grey.expand(-1, 3, -1, -1)))
    assert coloured.logits(torch.rand(2, 3, 20, 20)).shape == (2, 2, 4)
    frame = Preprocess(size=8, mean=(0.5,), std=(0.5,))
    seeing_grey = EnsembleInformation(
        [Classifier(small_cnn(4, channels=1).eval(), frame, device="cpu", name=name) for name in "ab"]
    )
    colours = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    assert torch.allclose(seeing_grey.logits(colours), seeing_grey.logits(torch.full((1, 1, 8, 8), 0.299)), atol=1e-5)


def test_mistakes_are_told():
    with pytest.raises(ModelError, match="two networks or more, not 1"):
        EnsembleInformation([tiny.classifier(0)])
    with pytest.raises(ModelError, match="the same classes"):
        EnsembleInformation([tiny.classifier(0), Classifier(tiny.network(1, 5), tiny.TRANSFORM, device="cpu")])
    semantic = EnsembleInformation([tiny.classifier(0), tiny.classifier(1)])
    with pytest.raises(DataError, match="float pixels in \\[0, 1\\]"):
        semantic(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))


def test_the_ensemble_of_the_detectors_agrees():
    networks = [tiny.network(seed) for seed in range(3)]
    semantic = EnsembleInformation([Classifier(each, tiny.TRANSFORM, device="cpu") for each in networks])
    images = torch.rand(5, 3, 8, 8)
    with torch.no_grad():
        together = Ensemble(networks).eval()(images * 2 - 1)["member_logits"].transpose(0, 1)
        assert torch.allclose(semantic.logits(images), together, atol=1e-5)
