"""Pretrained networks get a new head, learn other classes, and go on with outliers."""

import math

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn

from oodscope.base.errors import ModelError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.new_head import replace_head
from oodscope.models.zoo.zoo import create_model
from oodscope.training.augment.crop import Augment
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.recipe import Batch
from oodscope.training.train import train
from tests.training.training_toys import PREPROCESS, RECIPE, TinyNet, colours, negatives, same_weights

VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 2, "num_classes": 11}


def vit():
    torch.manual_seed(0)
    return timm.create_model("vit_tiny_patch16_224", **VIT)


def torchvision_vit():
    torch.manual_seed(0)
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=24, mlp_dim=48, num_classes=11
    )  # fmt: skip


NETWORKS = {
    "timm vision transformer": (vit, "head", 24),
    "torchvision vision transformer, its head all zeros": (torchvision_vit, "heads.head", 24),
    "one of a sequence": (lambda: torchvision.models.mobilenet_v3_small(num_classes=11), "classifier.3", 1024),
    "a 1x1 convolution": (lambda: timm.create_model("resnetv2_18", num_classes=11), "head.fc", 512),
    "a small one of our own": (lambda: TinyNet(11), "fc", 32),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_new_head_is_the_head_that_a_classifier_finds(name):
    build, path, width = NETWORKS[name]
    model = build()
    kept = {key: value.clone() for key, value in model.state_dict().items() if not key.startswith(path)}
    replaced = replace_head(model, 3, hidden=16, dropout=0.25)
    assert replaced is model
    assert all(torch.equal(model.state_dict()[key], value) for key, value in kept.items())
    fresh = model.get_submodule(path)
    assert [type(layer).__name__ for layer in fresh] == ["Flatten", "Dropout", "Linear", "ReLU", "Dropout", "Linear"]
    assert (fresh[1].p, fresh[4].p, fresh[2].in_features) == (0.25, 0.25, width)
    found = Classifier(model, Preprocess(size=32), device="cpu")
    assert (found.head_path, found.num_classes) == (f"{path}.5", 3), found.head_reason
    logits, features = found.forward(torch.rand(5, 3, 32, 32))
    assert features.shape == (5, 16) and features.min() >= 0
    torch.testing.assert_close(features @ fresh[5].weight.T + fresh[5].bias, logits)


def test_the_network_of_the_paper_by_name():
    with torch.device("meta"):  # its 86 million weights cost nothing there
        model, _ = create_model("torchvision:vit_b_16")
        head = replace_head(model, 10).heads.head
    assert (head[2].in_features, head[2].out_features, head[5].out_features) == (768, 256, 10)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, images):
        pooled = images.mean(dim=(2, 3))
        return self.one(pooled) + self.two(pooled)


def test_networks_without_one_last_layer_are_refused():
    with pytest.raises(ModelError, match="TwoHeads has no last linear layer"):
        replace_head(TwoHeads(), 3)
    with pytest.raises(ModelError, match="fails on a batch of shape"):
        replace_head(nn.Linear(7, 4), 3)


@pytest.mark.slow
def test_a_pretrained_network_learns_other_classes_and_then_what_is_none_of_them():
    transform, images, val = Preprocess(size=32), colours(240), colours(60, seed=1)
    recipe = FineTune(learning_rate=0.003, batch_size=32, epochs=8, patience=3, hidden=16)
    pretrained = vit()
    tuned = train(pretrained, recipe, images, transform, val=val, device="cpu")
    assert max(epoch.val_accuracy for epoch in tuned.history) > 0.9
    assert pretrained.head.out_features == 11, "the network that was given is left as it was"
    assert not torch.equal(tuned.model.patch_embed.proj.weight, pretrained.patch_embed.proj.weight), "all of it learns"

    outliers = negatives(60)
    exposure = OutlierExposure.after(recipe)
    exposed = train(tuned.model, exposure, images, transform, val=val, ood_train=outliers, device="cpu")
    pixels = transform(outliers.images(range(60)))
    with torch.no_grad():
        surest = [trained.model(pixels).softmax(1).amax(1).mean() for trained in (tuned, exposed)]
    assert surest[1] < surest[0] - 0.1
    assert len(exposed.history) == 5 and exposed.history[-1].val_accuracy > 0.85


def test_exposure_goes_on_as_the_recipe_did():
    recipe = FineTune(batch_size=96, seed=4, precision="bf16-mixed")
    exposure = OutlierExposure.after(recipe)
    assert (exposure.epochs, exposure.patience, exposure.ood_batch_size, exposure.weight) == (5, 0, 10, 1.0)
    same = ("batch_size", "seed", "precision", "learning_rate", "algorithm", "balanced", "weight_decay", "augment")
    assert all(getattr(exposure, name) == getattr(recipe, name) for name in same)
    plain = OutlierExposure()
    assert (plain.weight, plain.ood_batch_size, plain.epochs, plain.learning_rate) == (0.5, 256, 10, 0.001)


def test_the_loss_is_that_of_the_paper():
    rng = np.random.default_rng(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    known, unknown = (torch.tensor(rng.normal(size=(n, 3, 2, 2)), dtype=torch.float32) for n in (5, 7))
    labels, rows = torch.tensor([0, 1, 3, 3, 1]), torch.arange(7)
    weights = torch.tensor([1.0, 2.0, 0.5, 0.5, 2.0])
    outliers = Batch(unknown, torch.full((7,), -1), rows)

    def slow(weights):
        matrix, bias = (value.detach().double().numpy() for value in net[1].parameters())
        said = [[row.double().numpy().ravel() @ matrix.T + bias for row in images] for images in (known, unknown)]
        chances = [[np.exp(row) / np.exp(row).sum() for row in rows] for rows in said]
        hits = [w * -np.log(p[y]) for w, p, y in zip(weights, chances[0], labels.tolist())]
        flat = [sum(0.25 * math.log(0.25 / each) for each in p) for p in chances[1]]
        return sum(hits) / sum(weights) + 0.7 * sum(flat) / 7

    recipe = OutlierExposure(weight=0.7)
    for given in (None, weights):
        step = recipe.loss(net, Batch(known, labels, rows[:5], ood=outliers, weights=given))
        assert step.loss.item() == pytest.approx(slow([1.0] * 5 if given is None else given.tolist()), rel=1e-5)
        assert torch.equal(step.logits, net(known))
        plain = CrossEntropy().loss(net, Batch(known, labels, rows[:5], weights=given)).loss
        expected = nn.functional.cross_entropy(net(known), labels, weight=None if given is None else by_class())
        torch.testing.assert_close(plain, expected)


def by_class():
    return torch.tensor([1.0, 2.0, 9.0, 0.5])


def test_balanced_batches_weigh_classes_by_their_frequency():
    images = colours(20)
    rare = ImageSet("rare", images.source, [0] * 12 + [2] * 8, ["a", "b", "c"])
    recipe = RECIPE.model_copy(update={"balanced": True})
    for batch in Streams(recipe, Sets(rare, None, None), PREPROCESS, torch.device("cpu")).batches(0):
        by_hand = [20 / (2 * 12) if label == 0 else 20 / (2 * 8) for label in batch.labels.tolist()]
        assert batch.weights.tolist() == pytest.approx(by_hand)
    plain = Streams(RECIPE, Sets(rare, None, None), PREPROCESS, torch.device("cpu"))
    assert all(batch.weights is None for batch in plain.batches(0))


def test_adam_is_torchs_and_the_rate_constant():
    net = TinyNet()
    optimizer = FineTune(weight_decay=0.01).optimizer(net)
    assert isinstance(optimizer, torch.optim.Adam)
    assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (1e-4, 0.01)
    assert isinstance(CrossEntropy(algorithm="adam").optimizer(net), torch.optim.Adam)
    assert {FineTune().schedule(step, 5) for step in range(150)} == {1.0}
    assert [FineTune(warmup_epochs=1).schedule(step, 4) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_the_seed_decides_the_new_head():
    recipe, network = FineTune(epochs=1, patience=0, hidden=8, augment=Augment(pad=1)), TinyNet()
    one, again, other = (
        train(network, recipe.model_copy(update={"seed": seed}), colours(), PREPROCESS, device="cpu")
        for seed in (0, 0, 1)
    )
    assert one.model.fc[2].weight.shape == (8, 32)
    assert same_weights(one.model, again.model) and not same_weights(one.model, other.model)
