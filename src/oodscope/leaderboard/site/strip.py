"""A value and its interval as a dot on a rail: one glance down a column shows whose intervals overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodscope.document.number import Number

_CUT = 0.1
"""Share of the worst ends that lie off the rail: a few hopeless entries would squeeze all others together."""


@dataclass(frozen=True)
class Strip:
    """Where the value of a cell and the ends of its interval lie, as shares of the rail's length.

    Parameters
    ----------
    low, high : of the interval; both the value itself where there is none.
    beyond : whether the value lies off the rail, and is drawn at its end.
    """

    value: float
    low: float
    high: float
    beyond: bool


@dataclass(frozen=True)
class Rail:
    """The values at both ends; what lies beyond is drawn at the end."""

    low: float
    high: float

    @classmethod
    def of(cls, cells: Sequence[Number], higher: bool) -> "Rail":
        """A rail for a column, open towards the better end."""
        ends = np.array([end for cell in cells for end in (cell.value, *(interval_of(cell) or ()))])
        if not len(ends):
            return cls(0.0, 1.0)
        if higher:
            return cls(float(np.quantile(ends, _CUT)), float(ends.max()))
        return cls(float(ends.min()), float(np.quantile(ends, 1 - _CUT)))

    def place(self, value: float) -> float:
        """The share of the rail's length that lies left of a value."""
        share = 0.5 if self.high <= self.low else (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def strip(self, cell: Number) -> Strip:
        """One cell on the rail."""
        low, high = interval_of(cell) or (cell.value, cell.value)
        beyond = not self.low <= cell.value <= self.high
        return Strip(self.place(cell.value), self.place(low), self.place(high), beyond)


def interval_of(cell: Number) -> tuple[float, float] | None:
    """The interval; of a printed number, one spread to each side."""
    if cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    return None if cell.sd is None else (cell.value - cell.sd, cell.value + cell.sd)
