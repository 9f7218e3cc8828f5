"""Real CIFAR images: the superclasses are the published ones, and folds hold."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import hierarchical_choice
from oodscope.data.folds.sets import FoldPlan, fold_sets
from oodscope.data.imageset import ImageSet
from oodscope.data.public.cards import load_card
from oodscope.data.public.selection import restrict
from tests.realdata.packs import load_pack, pack

pytestmark = pytest.mark.realdata


def cifar100(folder, name):
    """A pack with its own class names and the card's superclasses, and the coarse labels that came with it."""
    images, extras = load_pack(folder, name)
    names = [str(each) for each in extras["class_names"]]
    made = ImageSet.from_arrays(name, images, extras["labels"].astype(np.int64), names)
    made.hierarchy.update(load_card("cifar100").levels(made))
    return made, extras["coarse_names"][extras["coarse_labels"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar100_test", "cifar100_train_25k"])
def test_every_image_has_its_published_superclass(real_data, name):
    made, coarse = cifar100(real_data, name)
    assert (made.hierarchy["superclass"] == coarse).all()
    assert len(set(coarse.tolist())) == 20


def test_cifar_has_duplicates_that_must_be_named(real_data):
    cifar10, whole = pack(real_data, "cifar10_test"), cifar100(real_data, "cifar100_test")[0]
    with pytest.raises(DataError, match="3 in the OOD set 'cifar100_test' are ID images too, or stand under two"):
        fold_sets(cifar10, whole)
    folded = fold_sets(cifar10, whole, FoldPlan(duplicates="drop"))
    assert "3 of 10000 images of 'cifar100_test' left out" in folded.notes[1]
    digests = [images.digests() for images in (cifar10, whole)]
    for fold in folded.folds():
        trained = {digests[0][row] for row in fold.id_train} | {digests[1][row] for row in fold.ood_train}
        tested = {digests[0][row] for row in fold.id_test} | {digests[1][row] for row in fold.ood_test}
        assert trained.isdisjoint(tested)
        assert np.bincount(cifar10.labels[fold.id_test]).tolist() == [200] * 10


def test_supercifar_folds(real_data):
    whole, _ = cifar100(real_data, "cifar100_test")
    strata = [whole.hierarchy["superclass"][np.argmax(whole.labels == label)] for label in range(100)]
    choice = hierarchical_choice(strata, 0.2, seed=42)
    id_set, ood_set = (restrict(whole, [whole.class_names[c] for c in part]) for part in (choice.id, choice.ood))
    folded = fold_sets(id_set, ood_set, FoldPlan(level="superclass", duplicates="drop"))
    for fold in folded.folds():
        assert set(np.bincount(id_set.labels[fold.id_test])) <= {19, 20}
        assert set(np.bincount(id_set.labels[fold.id_val])) <= {15, 16}
        assert len(fold.ood_test_classes) == 4
        assert len(set(ood_set.hierarchy["superclass"][fold.ood_test].tolist())) == 4
