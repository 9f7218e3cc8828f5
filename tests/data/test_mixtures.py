"""Mixtures of images are what their equation says, and depend on nothing but their place."""

import numpy as np

from oodscope.activations.probes.mixed import MixedFeatures
from oodscope.activations.store.store import ActivationStore
from oodscope.data.imageset import ImageSet
from oodscope.data.mixtures import SHARES, mixtures
from tests.tiny import classifier, imageset


def test_each_is_a_blend_with_an_image_of_another_class():
    images = imageset("a", 12, 0)
    pixels = np.stack(images.images(range(12))).astype(float)
    mixed = mixtures(images, seed=3)
    assert len(mixed) == 12 * len(SHARES)
    for row in range(12):
        for place, share in enumerate(SHARES):
            (blend,) = mixed.images([3 * row + place])
            fits = [
                other
                for other in range(12)
                if np.abs(share * pixels[row] + (1 - share) * pixels[other] - blend).max() <= 0.5
            ]
            assert len(fits) == 1
            assert images.labels[fits[0]] != images.labels[row]


def test_images_of_other_sizes_and_without_labels():
    large, small = np.full((10, 8, 3), 200, np.uint8), np.full((10, 8, 3), 100, np.uint8)
    (blend,) = mixtures(ImageSet.from_arrays("b", np.stack([large, small])), shares=[0.25]).images([0])
    assert (blend == 125).all()


def test_the_column_is_that_of_the_mixed_images(tmp_path):
    clf, images, probe = classifier(), imageset("a", 6, 0), MixedFeatures(seed=1)
    found = ActivationStore(tmp_path).extract(clf, images, probes=[probe])
    made = ActivationStore(tmp_path).extract(clf, mixtures(images, seed=1))
    assert found[probe.column].shape == (6, 3, made.features.shape[1])
    assert found[probe.column].flatten(0, 1).equal(made.features)
    assert found.logits.equal(ActivationStore(tmp_path).extract(clf, images).logits)
