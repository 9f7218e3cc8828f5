"""Trainer: how a fold gets its network, and what the network says of images."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from oodscope.activations.activations import Activations
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.crossval.draws import Rows, TrainingRows

FEW = 32
"""Images that a price is measured on."""


def few_rows(images: ImageSet) -> Rows:
    """Some rows from the whole of a set."""
    return np.unique(np.linspace(0, len(images) - 1, FEW).astype(np.int64))


def seconds_of(work: Callable[[], object]) -> float:
    """Of the second call; the first may have to compile, to cache or to start threads."""
    work()
    begun = perf_counter()
    work()
    return perf_counter() - begun


class FoldModel(Protocol):
    """A network trained on one fold."""

    def activations(self, images: ImageSet, rows: Rows) -> Activations:
        """What it says of some rows of a set."""
        ...


class Price(NamedTuple):
    """What work costs in seconds, as a few images show it.

    Parameters
    ----------
    per_pass : of one image through the network.
    per_epoch : of one image in one epoch of the training of one network.
    epochs, exposed_epochs : of a plain training, and of its exposure to outliers, at most.
    embeds_once : whether images pass a network once for all folds.
    """

    per_pass: float
    per_epoch: float
    epochs: int
    exposed_epochs: int
    embeds_once: bool


class Trainer(Protocol):
    """Trains the networks of folds: one plain one per ID set, one exposed to outliers per pair.

    Everything it does follows from its arguments and the seeds, so that a killed run repeats a batch of work exactly.
    """

    has_pre_activation: bool
    """Whether its networks also give the features before the last ReLU."""

    at_once: int
    """Folds that are trained in one call: fixed, because the last digits may depend on it."""

    @property
    def device(self) -> torch.device:
        """Where activations lie and detectors work."""
        ...

    def describe(self) -> dict[str, Any]:
        """Everything that decides the networks beside the folds, as JSON."""
        ...

    def begins_from(self) -> Classifier | None:
        """The network whose weights every fold starts from; ``None`` where they are drawn anew."""
        ...

    def open(self, sets: Sequence[ImageSet], progress: Progress) -> None:
        """Whatever is done once for all folds of these sets."""
        ...

    def price(self, images: ImageSet) -> Price:
        """What its work costs here, measured on a few images of a set."""
        ...

    def train(self, images: ImageSet, folds: Sequence[TrainingRows], progress: Progress) -> Sequence[FoldModel]:
        """One network per fold, trained on its rows of the ID set and stopped by its validation rows."""
        ...

    def expose(
        self,
        models: Sequence[FoldModel],
        images: ImageSet,
        outliers: ImageSet,
        folds: Sequence[TrainingRows],
        progress: Progress,
    ) -> Sequence[FoldModel]:
        """Each of these networks, fine-tuned with Outlier Exposure on its fold's outliers."""
        ...
