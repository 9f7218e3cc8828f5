"""Sampler: how chains move through the parameters of a variation."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Boundary


def check_positive(sampler: str, **settings: float) -> None:
    """Refuse settings that are not positive numbers."""
    for name, value in settings.items():
        if not (value > 0 and math.isfinite(value)):
            raise OodscopeError(f"{sampler}: {name} must be a positive number, not {value}")


def check_boundary(boundary: str) -> None:
    """Refuse a boundary that nobody knows."""
    if boundary not in get_args(Boundary):
        raise UnknownNameError("boundary", boundary, get_args(Boundary))


@dataclass
class State:
    """Where the chains of a block are.

    Parameters
    ----------
    points : ``[chains, D]``; with replicas, those of the target law come first.
    energy : of these points.
    accepted : how many moves each chain took.
    """

    points: Tensor
    energy: Tensor
    accepted: Tensor


class Sampler(ABC):
    """A rule by which chains move. Subclasses are frozen dataclasses whose fields are the settings.

    A sampler looks at the target only: it visits points and gets energies. The running minimum, budgets, images,
    precision and saving are the search's business. What it does at step t depends on t and the steps before, not on
    the budget, so that one run serves several budgets.

    Class attributes
    ----------------
    name : for ``create_sampler``.
    gradient : whether it asks for gradients.
    half : whether energies from a bf16 network are good enough; differences over tiny steps need float32.
    """

    name: ClassVar[str]
    gradient: ClassVar[bool] = False
    half: ClassVar[bool] = True

    @property
    def evaluations(self) -> int:
        """Evaluations per chain and step."""
        return 1

    @property
    def replicas(self) -> int:
        """Points per chain that are evaluated together."""
        return 1

    def begin(self, target: Target, start: Tensor) -> State:
        """Visit the start, which costs nothing."""
        return State(start, target.visit(start), count_from_zero(start))

    @abstractmethod
    def move(self, target: Target, state: Any, number: int) -> None:
        """Move all chains once; ``number`` counts from 0."""

    def describe(self) -> dict[str, object]:
        """Name and settings as plain JSON values: what a result records."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


def count_from_zero(points: Tensor) -> Tensor:
    """A counter for each chain."""
    return torch.zeros(len(points), dtype=torch.int64, device=points.device)


def take(state: State, where: Tensor, points: Tensor, energy: Tensor) -> None:
    """Move the chains that accept to their proposals, and count them."""
    state.points = torch.where(where.unsqueeze(1), points, state.points)
    state.energy = torch.where(where, energy, state.energy)
    state.accepted = state.accepted + where
