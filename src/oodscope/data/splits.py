"""What may be tuned on and what may be judged on are different types, so a leak does not type-check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Validation(Generic[T]):
    """The only thing a hyper-parameter search accepts: ``id_val`` and ``ood_val``."""

    id: T
    ood: T

    def map(self, function: Callable[[T], U]) -> "Validation[U]":
        return Validation(function(self.id), function(self.ood))


@dataclass(frozen=True)
class Test(Generic[T]):
    """The only thing a measurement accepts: ``id_test`` and the test sets by group and name."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    id: T
    near: Mapping[str, T] = field(default_factory=dict)
    far: Mapping[str, T] = field(default_factory=dict)
    csid: Mapping[str, T] = field(default_factory=dict)

    def map(self, function: Callable[[T], U]) -> "Test[U]":
        groups = ({name: function(item) for name, item in group.items()} for group in (self.near, self.far, self.csid))
        return Test(function(self.id), *groups)
