"""Ensembles: trained by the ordinary recipe, read back from disk, and disjoint where they must be."""

import numpy as np
import pytest
import torch

from oodscope.base.errors import DataError, ModelError
from oodscope.generation.sets.ensemble import HETEROGENEOUS, check_disjoint, train_ensemble
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.zoo.zoo import MODELS
from oodscope.training.augment.crop import Augment
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.train import train
from tests import tiny

RECIPE = CrossEntropy(epochs=2, batch_size=50, learning_rate=0.05, augment=Augment(pad=0, flip=False))
TWO = ("small_cnn", "small_cnn")


def ensemble(folder, seeds=(0, 1), recipe=RECIPE, id_train=None, **options):
    images = id_train or tiny.imageset("id_train", 100, 1)
    settings = {"preprocess": tiny.TRANSFORM, "folder": folder, "device": "cpu", **options}
    return train_ensemble(TWO, images, None, recipe, seeds, **settings)


def test_four_different_networks_are_known():
    assert len(set(HETEROGENEOUS)) == 4 and set(HETEROGENEOUS) <= set(MODELS)


def test_members_are_ordinary_trainings_kept_as_safetensors(tmp_path):
    members = ensemble(tmp_path)
    assert [each.name for each in members] == ["small_cnn-seed0", "small_cnn-seed1"]
    files = sorted(path.relative_to(tmp_path).as_posix().split("-")[1] for path in tmp_path.glob("*/model.safetensors"))
    assert files == ["seed0", "seed1"]
    from oodscope.models.small.cnn import small_cnn

    alone = train(
        lambda: small_cnn(num_classes=4),
        RECIPE.model_copy(update={"seed": 1}),
        tiny.imageset("id_train", 100, 1),
        tiny.TRANSFORM,
        device="cpu",
    )
    assert weights_fingerprint(alone.model) == weights_fingerprint(members[1].model)
    assert weights_fingerprint(members[0].model) != weights_fingerprint(members[1].model)


def test_a_finished_member_is_read_back(tmp_path, monkeypatch):
    first = ensemble(tmp_path)

    def never(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("oodscope.training.train.Loop", never)
    assert [each.fingerprint for each in ensemble(tmp_path)] == [each.fingerprint for each in first]
    with pytest.raises(AssertionError, match="trained again"):
        ensemble(tmp_path, seeds=(0, 2))
    with pytest.raises(AssertionError, match="trained again"):
        ensemble(tmp_path, recipe=RECIPE.model_copy(update={"epochs": 3}))
    with pytest.raises(AssertionError, match="trained again"):
        ensemble(tmp_path, id_train=tiny.imageset("id_train", 100, 2))


def test_grey_images_get_networks_of_one_channel(tmp_path):
    pixels, labels = tiny.images(40, 0)
    grey = tiny.ImageSet.from_arrays("grey", pixels[..., 0], labels, list("abcd"))
    frame = tiny.Preprocess(size=8, mean=(0.5,), std=(0.5,))
    members = ensemble(tmp_path, id_train=grey, preprocess=frame, recipe=RECIPE.model_copy(update={"epochs": 1}))
    assert {next(iter(each.model.parameters())).shape[1] for each in members} == {1}


def test_mistakes_are_told(tmp_path):
    images, options = tiny.imageset("id", 40, 0), {"preprocess": tiny.TRANSFORM, "folder": tmp_path, "device": "cpu"}
    with pytest.raises(ModelError, match="two networks or more, not 1"):
        train_ensemble(["small_cnn"], images, None, RECIPE, [0], **options)
    with pytest.raises(ModelError, match="2 architectures need 2 seeds, got 3"):
        train_ensemble(TWO, images, None, RECIPE, [0, 1, 2], **options)
    with pytest.raises(ModelError, match="would be one network"):
        train_ensemble(TWO, images, None, RECIPE, [0, 0], **options)
    bare = tiny.ImageSet.from_arrays("bare", np.zeros((8, 8, 8, 3), np.uint8))
    with pytest.raises(DataError, match="have no label"):
        train_ensemble(TWO, bare, None, RECIPE, [0, 1], **options)


def test_who_judges_had_no_part_in_it():
    makers = [tiny.classifier(seed, name=f"maker {seed}") for seed in (0, 1)]
    judges = [tiny.classifier(seed, name=f"judge {seed}") for seed in (2, 3)]
    check_disjoint(makers, judges, [tiny.classifier(4)])
    again = tiny.classifier(1, name="copy")
    with pytest.raises(ModelError, match="copy judges it and has the weights of maker 1, which made the set"):
        check_disjoint(makers, [judges[0], again])
    with pytest.raises(ModelError, match="under test and has the weights of judge 2, which judges it"):
        check_disjoint(makers, judges, [tiny.classifier(2, name="tested")])
    with pytest.raises(ModelError, match="under test and has the weights of maker 0"):
        check_disjoint(makers, judges, [tiny.classifier(0, name="tested")])
    touched = Classifier(tiny.network(1), tiny.TRANSFORM, device="cpu")
    with torch.no_grad():
        touched.model.head.bias[0] += 1e-6
    check_disjoint(makers, [touched])
