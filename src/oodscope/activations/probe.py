"""Probe: what a detector needs beyond logits and features."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from oodscope.base.hashing import fingerprint
from oodscope.models import Classifier


class Probe(ABC):
    """A function of network and images, run inside extraction and kept as a column.

    Two detectors that ask for equal probes share the column. A probe says what it costs, per image and
    beyond the one plain pass, so that a run can declare its passes and a test can count them.
    """

    forwards: ClassVar[int]
    backwards: ClassVar[int]

    @property
    @abstractmethod
    def column(self) -> str:
        """The column's name, parameters included: equal names mean equal values."""

    @abstractmethod
    def __call__(self, classifier: Classifier, images: Tensor) -> Tensor:
        """One row per image, for preprocessed images on the classifier's device."""

    @property
    def key(self) -> str:
        """Address of the stored column: code and parameters."""
        return fingerprint([type(self).__module__, type(self).__qualname__, self.column])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Probe) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
