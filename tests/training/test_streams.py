"""A batch is a function of its place in the training."""

import numpy as np
import pytest
import torch

import oodscope.training.loop.pixels as pixels
from oodscope.data.imageset import ImageSet
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from tests.training.training_toys import PREPROCESS, RECIPE, colours

CPU = torch.device("cpu")


def streams(recipe=RECIPE, count=50, ood=None) -> Streams:
    return Streams(recipe, Sets(colours(count), None, ood), PREPROCESS, CPU)


def test_an_epoch_shows_every_image_once_in_batches_of_nearly_equal_size():
    served = list(streams(count=49).batches(epoch=0))
    assert [len(batch.labels) for batch in served] == [13, 12, 12, 12]  # not 16, 16, 16 and a batch of one
    rows = torch.cat([batch.rows for batch in served]).numpy()
    assert sorted(rows) == list(range(49)) and list(rows) != list(range(49))
    labels = torch.cat([batch.labels for batch in served]).numpy()
    assert (labels == colours(49).labels[rows]).all()


def test_order_and_views_change_with_epoch_and_seed():
    same = streams()

    def content(of: Streams, epoch: int) -> tuple[list[int], float]:
        served = list(of.batches(epoch))
        return torch.cat([b.rows for b in served]).tolist(), float(sum(b.images.double().sum() for b in served))

    base = content(same, 0)
    assert content(streams(), 0) == base
    for other in (content(same, 1), content(streams(RECIPE.model_copy(update={"seed": 3})), 0)):
        assert other[0] != base[0] and other[1] != base[1]


@pytest.mark.parametrize("limit", [0, 2**31], ids=["streamed", "resident"])
@pytest.mark.parametrize("first", [1, 3])
def test_starting_in_the_middle_gives_the_same_batches(monkeypatch, limit, first):
    monkeypatch.setattr(pixels, "RESIDENT_BYTES", limit)
    recipe = RECIPE.model_copy(update={"ood_batch_size": 5})
    source = streams(recipe, ood=colours(7, seed=9))
    whole, tail = list(source.batches(2)), list(source.batches(2, first))
    assert len(tail) == len(whole) - first
    for one, other in zip(whole[first:], tail):
        assert torch.equal(one.images, other.images) and torch.equal(one.labels, other.labels)
        assert torch.equal(one.ood.images, other.ood.images) and torch.equal(one.ood.rows, other.ood.rows)
        assert one.epoch == other.epoch == 2


@pytest.mark.parametrize("count", [3, 200])
def test_outliers_come_beside_every_batch_however_many_there_are(count):
    source = streams(RECIPE.model_copy(update={"ood_batch_size": 10}), ood=colours(count, seed=9))
    epochs = [torch.cat([batch.ood.rows for batch in source.batches(epoch)]) for epoch in (0, 1)]
    assert [len(rows) for rows in epochs] == [40, 40]
    assert len(epochs[0].unique()) == min(count, 40)
    assert not torch.equal(*epochs)


def test_a_walk_shows_images_as_evaluation_will():
    images = colours(50)
    batches = list(Streams(RECIPE, Sets(images, None, None), PREPROCESS, CPU).train.walk(batch_size=20))
    assert torch.equal(torch.cat([batch.images for batch in batches]), PREPROCESS(images.images(range(50))))
    assert torch.cat([batch.rows for batch in batches]).tolist() == list(range(50))


def test_large_and_grey_images_are_fitted_first():
    grey = np.random.default_rng(0).integers(0, 256, (6, 30, 24), dtype=np.uint8)
    images = ImageSet.from_arrays("grey", grey, [0, 1] * 3)
    (batch,) = Streams(CrossEntropy(), Sets(images, None, None), PREPROCESS, CPU).train.walk(batch_size=9)
    assert torch.equal(batch.images, PREPROCESS(images.images(range(6))))
