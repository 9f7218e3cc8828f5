"""Passes with a network's own dropout layers: masks by layer and pass, the same for every image and batch."""

import numpy as np
import pytest
import torch
from torch import nn

import oodscope as oods
from oodscope.activations.probes.dropped import DroppedLogits, dropout_layers
from oodscope.activations.probes.probe import Passes
from oodscope.base.errors import DetectorError
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.classifier import Classifier
from tests.training.training_toys import PREPROCESS, Bare, TinyNet, colours


def classifier(net=TinyNet):
    torch.manual_seed(0)
    return Classifier(net(), PREPROCESS, device="cpu", name="tiny")


def test_a_row_does_not_depend_on_its_batch():
    shown, probe = torch.randn(9, 3, 12, 12), DroppedLogits(6)
    whole = probe(Passes(classifier(), shown))
    alone = torch.cat([probe(Passes(classifier(), each[None])) for each in shown])
    torch.testing.assert_close(whole, alone)
    assert whole.shape == (9, 6, 3) and whole.std(dim=1).min() > 0
    torch.testing.assert_close(DroppedLogits(6, seed=1)(Passes(classifier(), shown)).shape, whole.shape)
    assert not torch.equal(DroppedLogits(6, seed=1)(Passes(classifier(), shown)), whole)


def test_masks_drop_their_share_and_keep_the_mean():
    clf = classifier()
    seen = []
    clf.model.fc.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    images = torch.rand(1, 3, 12, 12)
    with torch.no_grad():
        plain = clf.model.eval().features(images)
    seen.clear()
    DroppedLogits(300)(Passes(clf, images))
    rows = torch.cat(seen)[-300:]  # before them the head was looked for
    live = plain[0] > 1e-3
    assert (rows[:, live] == 0).float().mean().item() == pytest.approx(0.2, abs=0.02)
    torch.testing.assert_close(rows.mean(0)[live], plain[0][live], rtol=0.15, atol=0)


def test_the_network_is_as_it_was():
    clf = classifier()
    images = torch.rand(2, 3, 12, 12)
    before = clf.forward(images).logits
    DroppedLogits(2)(Passes(clf, images))
    torch.testing.assert_close(clf.forward(images).logits, before)
    assert not any(part._forward_hooks for part in clf.model.modules())


def test_whole_channels_are_dropped_where_the_layer_says_so():
    net = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(8 * 144, 3))
    seen = []
    net[2].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    clf = Classifier(net, PREPROCESS, device="cpu")
    seen.clear()
    DroppedLogits(1)(Passes(clf, torch.rand(2, 3, 12, 12)))
    zero = (seen[0] == 0).flatten(2)
    assert (zero.all(2) | ~zero.any(2)).all() and zero.any() and not zero.all()


def test_it_is_judged_like_any_detector_and_declined_without_dropout():
    bench = oods.Benchmark(
        "b", "1", transform=PREPROCESS, id_train=colours(60, name="train"), id_test=colours(30, seed=2, name="test"),
        far=(oods.ImageSet.from_arrays("dark", 255 - np.stack(colours(30, seed=3).images(range(30)))),),
    )  # fmt: skip
    result = oods.evaluate(classifier(), bench, ["mc_dropout", "msp"])
    assert (result.scores.scores("mc_dropout", set="test") >= 0).all()
    assert len(dropout_layers(TinyNet())) == 1 and not dropout_layers(Bare())
    with pytest.raises(oods.OodscopeError, match="mc_dropout.*needs a network with dropout layers"):
        oods.evaluate(classifier(Bare), bench, ["mc_dropout"])


def test_one_pass_is_refused():
    with pytest.raises(DetectorError, match="passes must be at least 2"):
        _ = create_detector("mc_dropout", passes=1).probes
