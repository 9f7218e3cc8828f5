"""Probe: what a detector needs beyond logits and features."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

from torch import Tensor

from oodscope.activations.passes import Passes
from oodscope.base.hashing import fingerprint
from oodscope.models.classifier import Classifier


class Probe(ABC):
    """A function of network and images, run inside extraction and kept as a column.

    Two detectors that ask for equal probes share the column. A probe names the passes that it needs per image
    beyond the plain one; passes of the same name are shared between probes, so a run can declare how many it
    takes and a test can count them.
    """

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Probe) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Tap(Probe):
    """A probe that looks on while the plain pass runs, and so costs no pass of its own."""

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
