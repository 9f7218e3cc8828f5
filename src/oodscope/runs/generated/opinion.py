"""Opinion: what an ensemble of networks says of a set of images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.generation.distances.perceptual import Perceptual
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from oodscope.metrics.generated.information import mutual_information
from oodscope.metrics.generated.kid import Distance, frechet_at_infinity, kernel_distance
from oodscope.models.classifier.classifier import Classifier

PER_PIXEL = 50 / (3 * 224 * 224) ** 0.5
"""The length of 50 that the paper gives all differences of its images of 224 pixels, per value of a pixel."""

BATCH = 256


def perceived(images: ImageSet, originals: ImageSet, perceptual: Perceptual, device: torch.device) -> float:
    r"""The mean distance between originals and their shifted versions, all shifted by the same length.

    .. math:: \frac1n\sum_i d\Bigl(x_i,\ x_i + r\,\frac{x'_i - x_i}{\lVert x'_i - x_i\rVert_2}\Bigr), \qquad
              r = 0.129\,\sqrt{CHW}

    At one length, noise and a structured change differ in how far features move. Pairs that do not differ are left out.

    Parameters
    ----------
    images, originals : row i of one was made from row i of the other.
    """
    if len(images) != len(originals):
        raise DataError(f"{images.name}: {len(images)} images, but {len(originals)} originals; rows must match")
    total, count = torch.zeros((), dtype=torch.float64, device=device), torch.zeros((), device=device)
    for start in range(0, len(images), BATCH):
        rows = np.arange(start, min(start + BATCH, len(images)))
        before, after = (_pixels(each, rows).to(device) for each in (originals, images))
        if before.shape != after.shape:
            raise DataError(f"{images.name}: images and originals differ in size or colours")
        change = after - before
        length = change.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        radius = PER_PIXEL * change[0].numel() ** 0.5
        with torch.no_grad():
            distance = perceptual(before, before + radius * change / length.clamp_min(1e-12))
        moved = length.flatten() > 0
        total += torch.where(moved, distance.double(), 0.0).sum()
        count += moved.sum()
    if not float(count):
        raise DataError(f"{images.name}: no image differs from its original")
    return float(total / count)


def _pixels(images: ImageSet, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
    pictures = [np.atleast_3d(picture) for picture in images.images(rows)]
    if len({picture.shape for picture in pictures}) > 1:
        raise DataError(f"{images.name}: images differ in size; a perceptual distance compares images of one size")
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255


Extract = Callable[[Sequence[Classifier], ImageSet], list[Activations]]
"""Reads what networks make of a set from the store; what is not there is computed, each image decoded once for all."""

CHUNK = 4096
"""Images whose probabilities under all networks are in memory at once."""


@dataclass(frozen=True)
class Opinion:
    """Of every image of one set.

    Parameters
    ----------
    prediction : the class with the largest mean probability over the networks.
    probability : ``[N, C]`` mean probability of each class.
    information : mutual information in nats: how much the networks disagree beyond what each doubts by itself.
    """

    prediction: NDArray[np.int64]
    probability: NDArray[np.float32]
    information: NDArray[np.float64]


def ask(networks: Sequence[Classifier], images: ImageSet, extract: Extract) -> Opinion:
    """The opinion of an ensemble about a set."""
    known = extract(networks, images)
    means, informations = [], []
    for chunks in zip(*(each.chunks(CHUNK, only=("logits",)) for each in known)):
        members = np.stack([chunk.logits.numpy().astype(np.float64) for chunk in chunks])
        probabilities = softmax(members, axis=2)
        means.append(probabilities.mean(axis=0))
        informations.append(mutual_information(probabilities))
    mean = np.concatenate(means)
    return Opinion(mean.argmax(axis=1).astype(np.int64), mean.astype(np.float32), np.concatenate(informations))


MOST = 10_000
"""Images of a set that are looked at."""

ENOUGH = 1_000
"""Images of a set for a kernel distance, where sets are not compared by more: ten blocks of a hundred."""


def comparable(sets: Sequence[ImageSet]) -> list[ImageSet]:
    """Those of two images or more: one has no covariance, and would leave one of each other set to compare."""
    return [images for images in sets if len(images) > 1]


def equal_count(sets: Sequence[ImageSet]) -> int:
    """How many images of each set are compared: the distance of few images is larger, so all sets give as many."""
    return min(MOST, *(len(images) for images in sets))


def looked_at(images: ImageSet, sets: Sequence[ImageSet], seed: int) -> ImageSet:
    """The images of one set that closeness is judged by, beside these sets."""
    return _drawn(images, max(equal_count(sets), ENOUGH), seed)


def reference(train: ImageSet, seed: int) -> ImageSet:
    """The training images that sets are compared with."""
    return _drawn(train, MOST, seed)


def _drawn(images: ImageSet, count: int, seed: int) -> ImageSet:
    return images.take(np.sort(np.random.default_rng(seed).permutation(len(images))[:count]))


@dataclass(frozen=True)
class Closeness:
    """How far a set lies from the training images, in the features of one network.

    Parameters
    ----------
    frechet : of as many images of every set, to up to ``MOST`` training images: a poorly known covariance of these
        would be added to every distance, and extrapolating over the others does not take it away.
    frechet_infinity : the same, extrapolated to infinitely many images; None where there are too few.
    kernel : KID in features divided by the root mean square of the training features, with an interval from blocks; of
        a thousand images of each set that has them, because it has no bias that depends on their number.
    """

    frechet: float
    frechet_infinity: float | None
    kernel: Distance


def closeness(
    train: ImageSet, sets: Sequence[ImageSet], network: Classifier, extract: Extract, seed: int
) -> dict[str, Closeness]:
    """The distance of each set to the training images, by name; empty for a network without features, and
    without sets of fewer than two images.

    A judging network measures what matters to a classifier; another network (self-supervised, or trained on other
    images) measures what it was trained for. Distances in features of different networks are not comparable.
    """
    sets = comparable(sets)
    if network.head is None or not sets:
        return {}
    count = equal_count(sets)
    real = _features(reference(train, seed), network, extract).astype(np.float64)
    learnt, scale = Gaussian.of(real), float(np.sqrt(np.mean(real**2))) or 1.0
    fewer = real[np.random.default_rng(seed).permutation(len(real))[:count]]  # of all classes, also of a sorted set
    found = {}
    for images in sets:
        every = _features(looked_at(images, sets, seed), network, extract).astype(np.float64)
        features = every[np.random.default_rng(seed).permutation(len(every))[:count]]
        distance = frechet_distance(learnt, Gaussian.of(features))
        many = len(features) >= 2 * features.shape[1]
        infinite = frechet_at_infinity(fewer, features, seed=seed) if many else None
        found[images.name] = Closeness(distance, infinite, kernel_distance(real / scale, every / scale, seed=seed))
    return found


def _features(images: ImageSet, network: Classifier, extract: Extract) -> NDArray[np.float32]:
    (known,) = extract([network], images)
    features: NDArray[np.float32] = known.features.cpu().numpy()
    return features
