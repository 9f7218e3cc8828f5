"""Probe: what a detector needs beyond logits and features."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from oodscope.base.errors import ActivationError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import Outputs

T = TypeVar("T")

RECORDED = "recorded forward"
"""The forward pass whose graph all gradients of a batch share."""


class Passes:
    """One prepared batch, and the passes over it that several probes may share.

    Every gradient comes from one recorded forward pass, and a gradient of the same name is computed once.

    Parameters
    ----------
    classifier : whose network is asked.
    images : preprocessed images on the classifier's device.
    """

    def __init__(self, classifier: Classifier, images: Tensor) -> None:
        self.classifier = classifier
        self.images = images.detach()
        self._gradients: dict[str, Tensor] = {}
        self._kept: dict[str, Any] = {}

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` computes of this batch, kept under ``name`` for the next probe that asks."""
        if name not in self._kept:
            self._kept[name] = make()
        value: T = self._kept[name]
        return value

    @cached_property
    def recorded(self) -> tuple[Tensor, Outputs]:
        """The images as a leaf of a graph, and the outputs at its end (the pass named ``RECORDED``)."""
        leaf = self.images.clone().requires_grad_(True)
        return leaf, self.classifier.forward(leaf, grad=True)

    def gradient(self, name: str, objective: Callable[[Outputs], Tensor]) -> Tensor:
        """The gradient of a scalar ``objective`` of the outputs with respect to the images, called ``name``.

        The objective is a sum over images, never a mean: what one image gets must not depend on its batch.
        """
        if name not in self._gradients:
            leaf, outputs = self.recorded
            (self._gradients[name],) = torch.autograd.grad(objective(outputs), leaf, retain_graph=True)
        return self._gradients[name]


class Probe(ABC):
    """A function of network and images, run inside extraction and kept as a column.

    Two detectors that ask for equal probes share the column. A probe names the passes that it needs per image
    beyond the plain one; passes of the same name are shared between probes, so a run can declare how many it
    takes and a test can count them.

    Class attributes
    ----------------
    differentiable : whether gradients flow from its column to the images, where a scorer records them.
    """

    differentiable: ClassVar[bool] = False

    @property
    @abstractmethod
    def column(self) -> str:
        """The column's name, parameters included: equal names mean equal values."""

    @property
    @abstractmethod
    def forwards(self) -> frozenset[str]:
        """Names of the forward passes it needs."""

    @property
    @abstractmethod
    def backwards(self) -> frozenset[str]:
        """Names of the backward passes it needs."""

    @abstractmethod
    def __call__(self, passes: Passes) -> Tensor:
        """One row per image of the batch."""

    @property
    def key(self) -> str:
        """Address of the stored column: code and parameters."""
        return fingerprint([type(self).__module__, type(self).__qualname__, self.column])

    def address(self, classifier: Classifier) -> list[str] | None:
        """What decides the column in the place of the classifier; None where that decides it."""
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Probe) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class SetProbe(Probe):
    """A column that comes from other images, made of a whole set; only fitting reads it, and of held-out images."""

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    @abstractmethod
    def made_of(self, images: ImageSet) -> ImageSet:
        """The images that must pass the network in the place of these."""

    @abstractmethod
    def of_made(self, logits: Tensor, features: Tensor | None) -> Tensor:
        """The column, one row per image of the set, of what the network said of the images made of it."""

    def __call__(self, passes: Passes) -> Tensor:
        raise ActivationError(f"{self.column} is a column of a whole set, not of a batch")


class Tap(Probe):
    """A probe that looks on while the plain pass runs, and so costs no pass of its own."""

    differentiable: ClassVar[bool] = True

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset()

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    @abstractmethod
    def watching(self, classifier: Classifier) -> AbstractContextManager[Callable[[], Tensor]]:
        """Inside the block the network's passes are watched; the function says what the last one showed."""

    def __call__(self, passes: Passes) -> Tensor:
        with self.watching(passes.classifier) as shown:
            passes.classifier.forward(passes.images)
            return shown()
