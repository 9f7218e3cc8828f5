"""What a network shows on the way: stages, members, the sign of its features."""

import numpy as np
import pytest
import torch
from torch import nn

from oodscope.base.errors import ModelError
from oodscope.data.preprocess import Preprocess
from oodscope.detectors.capabilities import capabilities_of
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.anatomy import altered_map, find_stages, watched_maps
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.zoo.zoo import create_model

TRANSFORM = Preprocess(size=32)


def anatomy(name):
    return Classifier(create_model(name, num_classes=7)[0], TRANSFORM, device="cpu").anatomy


def test_the_stages_of_a_resnet_are_its_four_layers():
    assert anatomy("resnet18_32").stages == ("layer1", "layer2", "layer3", "layer4")


@pytest.mark.slow
def test_the_stages_of_a_vgg_end_before_each_pooling():
    model, _ = create_model("torchvision:vgg11", num_classes=7)
    found = Classifier(model, Preprocess(size=64), device="cpu").anatomy.stages
    assert found[:5] == ("features.1", "features.4", "features.9", "features.14", "features.19")


def test_a_transformer_on_tokens_has_at_most_its_patch_grid():
    assert len(anatomy("vit_tiny_32").stages) <= 1


@pytest.mark.parametrize(("name", "signed"), [("resnet18_32", False), ("small_cnn", False), ("vit_tiny_32", True)])
def test_the_sign_of_the_features(name, signed):
    assert anatomy(name).signed_features is signed


def test_watched_maps_are_those_of_the_pass():
    model, _ = create_model("resnet18_32", num_classes=7)
    model.eval()
    images = torch.randn(3, 3, 32, 32)
    with torch.no_grad(), watched_maps(model, ("layer1", "layer3"), lambda maps: maps.mean(dim=(2, 3))) as shown:
        model(images)
        first = [part.clone() for part in shown]
        model(images * 2)
    x = model.maxpool(model.relu(model.bn1(model.conv1(images)))).detach()
    one = model.layer1(x)
    three = model.layer3(model.layer2(one))
    assert torch.allclose(first[0], one.mean(dim=(2, 3)), atol=1e-5)
    assert torch.allclose(first[1], three.mean(dim=(2, 3)), atol=1e-5)
    assert not torch.allclose(first[1], shown[1])


class SharedActivation(torch.nn.Module):
    """One ReLU after both convolutions, and a second resolution."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.second = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.narrow = torch.nn.Conv2d(4, 5, 3, padding=1, stride=2)
        self.relu = torch.nn.ReLU()
        self.fc = torch.nn.Linear(5, 7)

    def forward(self, images):
        maps = self.relu(self.second(self.relu(self.first(images))))
        return self.fc(self.narrow(maps).mean(dim=(2, 3)))


def test_a_module_that_runs_twice_is_no_stage():
    model = SharedActivation().eval()
    stages = find_stages(model, torch.randn(2, 3, 8, 8))
    assert stages == ("second", "narrow")
    images = torch.randn(3, 3, 8, 8)
    with torch.no_grad(), watched_maps(model, stages, torch.clone) as shown:
        model(images)
        assert torch.equal(shown[0], model.second(model.relu(model.first(images))))


def test_an_altered_map_reaches_the_logits_and_is_put_back():
    model, _ = create_model("resnet18_32", num_classes=7)
    model.eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        plain = model(images)
        with altered_map(model, "layer4", torch.zeros_like):
            altered = model(images)
        assert torch.allclose(altered, model.fc.bias.expand(2, -1))
        assert model(images).equal(plain)


class TestEnsemble:
    def members(self):
        torch.manual_seed(0)
        return [nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4)) for _ in range(3)]

    def test_votes_with_the_mean_probability(self):
        members = self.members()
        images = torch.randn(5, 3, 8, 8)
        out = Ensemble(members)(images)
        expected = torch.stack([member(images).softmax(dim=1) for member in members]).mean(dim=0)
        assert torch.allclose(out["logits"].softmax(dim=1), expected, atol=1e-6)
        assert torch.allclose(out["logits"].exp().sum(dim=1), torch.ones(5), atol=1e-6)
        assert out["member_logits"].shape == (5, 3, 4)

    def test_a_classifier_knows_its_members_and_that_there_is_no_one_head(self):
        clf = Classifier(Ensemble(self.members()), Preprocess(size=8), device="cpu")
        assert clf.anatomy.members == 3
        assert clf.head is None
        pictures = list(np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8))
        assert clf.forward(clf.prepare(pictures)).logits.shape == (2, 4)

    def test_one_network_is_no_ensemble(self):
        with pytest.raises(ModelError, match="two networks or more, not 1"):
            Ensemble(self.members()[:1])

    def test_its_logits_are_log_probabilities_and_those_of_a_member_are_not(self):
        classifiers = [
            Classifier(each, Preprocess(size=8), device="cpu") for each in (Ensemble(self.members()), self.members()[0])
        ]
        assert [each.anatomy.log_probabilities for each in classifiers] == [True, False]


@pytest.mark.parametrize("build", [Ensemble, lambda members: nn.Sequential(members[0], nn.LogSoftmax(dim=1))])
def test_a_free_energy_of_log_probabilities_is_named_beforehand(build):
    clf = Classifier(build(TestEnsemble().members()), Preprocess(size=8), device="cpu")
    detectors = {name: create_detector(name) for name in ("msp", "ebo", "mls")}
    capabilities = capabilities_of(list(detectors.values()), clf, train=True, held_out=True)
    reasons = {name: detector.unmet_requirement(capabilities) for name, detector in detectors.items()}
    assert reasons["msp"] is reasons["mls"] is None
    assert "these are log-probabilities, whose log-sum-exp is 0" in reasons["ebo"]
