"""Cutting and joining sets: nothing is lost, doubled or mislabelled."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.data.public.cards import load_card
from oodscope.data.public.selection import DrawnClasses, RandomShare, crop, join, restrict


def numbered(name, labels, classes, first=0):
    """Images that say which they are by their brightness."""
    pixels = np.repeat(np.arange(first, first + len(labels), dtype=np.uint8), 12).reshape(-1, 2, 2, 3)
    return ImageSet.from_arrays(name, pixels, None if labels is None else np.array(labels), classes)


def brightness(images):
    return [int(image[0, 0, 0]) for image in images.images(range(len(images)))]


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_share_and_its_rest_are_the_whole(count, share, seed):
    assume(0 < round(share * count) < count)
    images = numbered("x", np.zeros(count, int), ["a"])
    parts = [RandomShare(share=share, seed=seed, keep=keep).apply(images) for keep in ("held_out", "rest")]
    assert len(parts[0]) == round(share * count)
    assert sorted(np.concatenate([part.rows for part in parts])) == list(range(count))
    assert all((np.diff(part.rows) > 0).all() for part in parts)


def test_shares_depend_on_the_seed():
    images = numbered("x", np.zeros(100, int), ["a"])
    chosen = {tuple(RandomShare(share=0.1, seed=seed, keep="held_out").apply(images).rows) for seed in (0, 0, 1, 2)}
    assert len(chosen) == 3


def test_joined_sets_agree_on_classes_by_name():
    first = numbered("first", [0, 1, 1], ["cat", "dog"])
    second = numbered("second", [0, 1, 0, -1], ["dog", "eel"], first=50).take([3, 1, 0, 2])
    both = join("both", [first.take([2, 0]), second])
    assert both.class_names == ("cat", "dog", "eel")
    assert both.labels.tolist() == [1, 0, -1, 2, 1, 1]
    assert brightness(both) == [2, 0, 53, 51, 50, 52]
    assert both.sample_ids() == ["first/2", "first/0", "second/3", "second/1", "second/0", "second/2"]
    assert both.digests() == [*first.take([2, 0]).digests(), *second.digests()]


def test_one_set_joined_keeps_its_source():
    images = numbered("x", [0, 1], ["a", "b"])
    assert join("y", [images]).source is images.source
    assert join("y", [images]).name == "y"


def test_restricted_sets_have_the_classes_they_kept():
    images = numbered("x", [0, 1, 2, -1, 2, 1], ["a", "b", "c"])
    kept = restrict(images, ["c", "a"])
    assert kept.class_names == ("c", "a")
    assert brightness(kept) == [0, 2, 4]
    assert kept.labels.tolist() == [1, 0, 0]


@pytest.mark.parametrize(("share", "count"), [("0.2", 20), ("0.29", 29), ("1/3", 33)])
def test_shares_of_classes_are_exact(share, count):
    labels = np.arange(100)
    images = ImageSet.from_arrays(
        "x", np.zeros((100, 2, 2, 3), np.uint8), labels, [f"c{n}" for n in labels], {"all": ["one"] * 100}
    )
    drawn = DrawnClasses(level="all", share=share, seed=0, keep="drawn").choose(images)
    others = DrawnClasses(level="all", share=share, seed=0, keep="others").choose(images)
    assert len(drawn) == count
    assert sorted([*drawn, *others]) == sorted(images.class_names)
    with pytest.raises(DataError, match="less than one class: no outlier is left"):
        DrawnClasses(level="all", share="0.005", seed=0, keep="drawn").choose(images)
    with pytest.raises(DataError, match="no level 'superclass'"):
        DrawnClasses(level="superclass", share=share, seed=0, keep="drawn").choose(images)


def test_a_crop_takes_the_middle_and_never_grows():
    pixels = np.arange(6 * 9 * 3, dtype=np.uint8).reshape(1, 6, 9, 3)
    images = ImageSet.from_arrays("x", pixels, [0], ["a"])
    (cut,) = crop(images, 4).images([0])
    assert np.array_equal(cut, pixels[0, 1:5, 2:6])
    (wide,) = crop(images, 8).images([0])
    assert wide.shape == (6, 8, 3)
    assert crop(images, 4).digests() != images.digests()


def test_the_outliers_of_supercifar100_stay_what_they_were():
    """A benchmark has a version: its draw may not change with the code that makes it, nor with the order of images."""
    card = load_card("cifar100")
    names = sorted(name for members in card.hierarchy["superclass"].values() for name in members)
    images = ImageSet.from_arrays("x", np.zeros((100, 2, 2, 3), np.uint8), np.arange(100)[::-1], names)
    images.hierarchy.update(card.levels(images))
    drawn = DrawnClasses(level="superclass", share="0.2", seed=42, keep="drawn").choose(images)
    assert " ".join(drawn) == (
        "apple baby bed beetle bicycle can cattle lawn_mower leopard lobster maple_tree mountain raccoon road rose "
        "shark shrew television turtle whale"
    )
