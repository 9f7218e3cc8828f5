"""Recipes on miniatures of ImageNet's layouts: folders and lists of JPEGs, cut while they are decoded."""

import numpy as np
import pytest
import torch
from torch import nn

import oodscope as oods
import oodscope.training.loop.lockstep as lockstep
from oodscope.base.config import read_yaml
from oodscope.base.errors import DataError, ModelError
from oodscope.data.public.needs import needs_of
from oodscope.data.public.prepare import prepare
from oodscope.jobs.run import PACKAGED
from oodscope.jobs.train import read_training
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.streams import Streams
from oodscope.training.registry import create_recipe
from oodscope.training.train import train
from tests.data.public.miniature import Miniature
from tests.training.training_toys import StoppedError, same_weights, stop_at


class Staged(nn.Module):
    """Two stages, of which the last is called as in a ResNet."""

    def __init__(self, classes=200):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6)
        self.layer4 = nn.Sequential(nn.Conv2d(6, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8, classes)

    def forward(self, images):
        return self.fc(self.layer4(torch.relu(self.norm(self.conv(images)))).mean((2, 3)))


@pytest.fixture(scope="module", params=["imagenet200", "imagenet1k"])
def bench(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        miniature = Miniature(tmp_path_factory.mktemp("miniature"), patch)
        prepare(needs_of(request.param), miniature.root)
        yield oods.load_benchmark(request.param, root=miniature.root)


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))


def start(bench):
    torch.manual_seed(3)
    return Staged(len(bench.class_names))


def resumed(recipe, bench, tmp_path):
    """What a training gives that is stopped twice; the same as one that is not."""

    def run(**options):
        val = bench.id_val if recipe.keep == "best" else None
        return train(start(bench), recipe, bench.id_train, bench.transform, val=val, device="cpu", **options)

    whole = run()
    for step in (2, 5):
        with pytest.raises(StoppedError):
            run(folder=tmp_path, progress=stop_at(step))
    parts = run(folder=tmp_path)
    assert same_weights(parts.model, whole.model)
    return whole


@pytest.mark.slow
def test_the_base_recipe_starts_stops_and_resumes(bench, tmp_path, eager):
    name = f"train-{bench.name}"
    (recipe,) = read_training(read_yaml(PACKAGED / f"{name}.yaml"), name).train
    resumed(recipe.model_copy(update={"epochs": 2, "batch_size": 8}), bench, tmp_path)


def cider(**more):
    views = [{"kind": "resized_crop", "area": [0.4, 1.0]}, "jitter"]
    settings = {"epochs": 2, "batch_size": 8, "warmup_epochs": 0, "learning_rate": 0.01, "augment": views, "size": 4}
    return create_recipe("cider", **{**settings, "train_only": ["layer4"], **more})


@pytest.mark.slow
def test_cider_fine_tunes_the_last_stage(bench, tmp_path, eager):
    trained = resumed(cider(), bench, tmp_path)
    before, after = start(bench).state_dict(), trained.model.state_dict()
    still = [key for key in before if key in after and torch.equal(before[key], after[key])]
    assert {key for key in still if not key.endswith("num_batches_tracked")} == {
        key for key in before if key.startswith(("conv.", "norm.")) and not key.endswith("num_batches_tracked")
    }, "frozen weights and statistics stay, those of the last stage move"


def test_each_view_is_a_cut_of_its_own(bench):
    streams = Streams(
        cider(augment="resized_crop"), Sets(bench.id_train, None, None), bench.transform, torch.device("cpu")
    )
    assert streams.train.crop is not None, "pictures larger than the network's input are cut while they are decoded"
    first = next(streams.batches(0))
    size = bench.transform.size
    assert first.images.shape == (2 * len(first.labels), 3, size, size)
    one, two = first.images.chunk(2)
    assert (one - two).abs().amax(dim=(1, 2, 3)).gt(0.1).float().mean() > 0.9
    torch.testing.assert_close(next(streams.batches(0)).images, first.images)
    single = Streams(
        create_recipe("cross_entropy", batch_size=8, augment="resized_crop"),
        Sets(bench.id_train, None, None),
        bench.transform,
        torch.device("cpu"),
    )
    torch.testing.assert_close(next(single.batches(0)).images, one, msg="the first view is that of other recipes")


def test_a_part_that_is_not_there_is_named(bench):
    with pytest.raises(ModelError, match="no part 'layer5': train_only names some of conv, norm, layer4, fc"):
        train(start(bench), cider(train_only=["layer5"]), bench.id_train, bench.transform, device="cpu")


def mos(bench, **more):
    names = bench.id_train.class_names
    groups = {"first": names[: len(names) // 3], "rest": names[len(names) // 3 :]}
    settings = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, "augment": "resized_crop", "groups": groups}
    return create_recipe("mos", **{**settings, **more})


@pytest.mark.slow
def test_mos_fine_tunes_with_groups(bench, tmp_path, eager):
    trained = resumed(mos(bench), bench, tmp_path)
    output = trained.model(torch.zeros(2, 3, 28, 28))
    classes = len(bench.class_names)
    assert output["others"].shape == (2, 2) and output["logits"].shape == (2, classes)
    held = output["logits"].exp()[:, : classes // 3].sum(1) + output["others"].exp()[:, 0]
    np.testing.assert_allclose(held.detach().numpy(), 1.0, rtol=1e-5)


def test_mos_without_groups_is_refused_in_one_line(bench):
    names = bench.id_train.class_names
    wrong = [
        (
            {},
            r"mos needs groups of classes: set level to one of the training images' hierarchy \(none\), or set groups",
        ),
        ({"first": names[:5]}, "is in none of the groups"),
        ({"first": names, "twice": names[:1]}, "lies in two groups"),
        ({"first": (*names, "unicorn")}, "'unicorn' of group 'first' is no class of the training images"),
    ]
    for groups, words in wrong:
        with pytest.raises(DataError, match=words):
            recipe = mos(bench, groups=groups)
            train(start(bench), recipe, bench.id_train, bench.transform, device="cpu")
