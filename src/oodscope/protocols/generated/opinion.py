"""Opinion: what an ensemble of networks says of a set of images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from oodscope.activations.activations import Activations
from oodscope.data.imageset import ImageSet
from oodscope.metrics.generated.information import mutual_information
from oodscope.models.classifier.classifier import Classifier

Extract = Callable[[Classifier, ImageSet], Activations]
"""Reads what a network makes of a set from the store."""

CHUNK = 4096
"""Images whose probabilities under all networks are in memory at once."""


@dataclass(frozen=True)
class Opinion:
    """Of every image of one set.

    Parameters
    ----------
    prediction : the class with the largest mean probability over the networks.
    information : mutual information in nats: how much the networks disagree beyond what each doubts by itself.
    """

    prediction: NDArray[np.int64]
    information: NDArray[np.float64]


def ask(networks: Sequence[Classifier], images: ImageSet, extract: Extract) -> Opinion:
    """The opinion of an ensemble about a set."""
    known = [extract(each, images) for each in networks]
    predictions, informations = [], []
    for chunks in zip(*(each.chunks(CHUNK, only=("logits",)) for each in known)):
        members = np.stack([chunk.logits.numpy().astype(np.float64) for chunk in chunks])
        probabilities = softmax(members, axis=2)
        predictions.append(probabilities.mean(axis=0).argmax(axis=1).astype(np.int64))
        informations.append(mutual_information(probabilities))
    return Opinion(np.concatenate(predictions), np.concatenate(informations))
