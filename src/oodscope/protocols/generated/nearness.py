"""How far a set lies from the training images: Fréchet distances in the features of one network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.data.imageset import ImageSet
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from oodscope.models.classifier.classifier import Classifier
from oodscope.protocols.generated.opinion import Extract

MOST = 10_000
"""Images of a set that are looked at."""

MOST_TRAINING = 50_000


def equal_count(sets: Sequence[ImageSet]) -> int:
    """How many images of each set are compared: the distance of few images is larger, so all sets give as many."""
    return min(MOST, *(len(images) for images in sets))


def frechet_distances(
    train: ImageSet, sets: Sequence[ImageSet], network: Classifier, extract: Extract, seed: int
) -> dict[str, float]:
    """The distance of each set to the training images, by name; empty for a network without features.

    A judging network measures what matters to a classifier; another network (self-supervised, or trained on other
    images) measures what it was trained for. Distances in features of different networks are not comparable.
    """
    if network.head is None:
        return {}
    count = equal_count(sets)
    learnt = Gaussian.of(_features(train, min(MOST_TRAINING, len(train)), network, extract, seed))
    return {
        images.name: frechet_distance(learnt, Gaussian.of(_features(images, count, network, extract, seed)))
        for images in sets
    }


def _features(images: ImageSet, count: int, network: Classifier, extract: Extract, seed: int) -> NDArray[np.float32]:
    chosen = np.random.default_rng(seed).permutation(len(images))[:count]
    features: NDArray[np.float32] = extract(network, images.take(np.sort(chosen))).features.cpu().numpy()
    return features
