"""A value and its interval as a dot on a rail: one glance down a column shows who can be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from oodscope.document.number import Number

_WIDTH, _HEIGHT, _EDGE = 110, 10, 4
_CUT = 0.1
"""Share of the worst ends that lie off the rail: a few hopeless entries would squeeze all others together."""


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

    def place(self, value: float) -> str:
        """Pixels from the left."""
        share = 0.5 if self.high <= self.low else (value - self.low) / (self.high - self.low)
        return f"{_EDGE + min(max(share, 0.0), 1.0) * (_WIDTH - 2 * _EDGE):.1f}"

    def draw(self, cell: Number | None) -> Markup:
        """The picture of one cell; nothing where there is no value."""
        if cell is None:
            return Markup("")
        line = Markup("")
        if ends := interval_of(cell):
            line = Markup('<line x1="{}" x2="{}" y1="5" y2="5"/>').format(*map(self.place, ends))
        return Markup(
            '<svg width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true">'
            '<line class="rail" x1="0" x2="{w}" y1="5" y2="5"/>{line}<circle cx="{x}" cy="5" r="3.2"/></svg>'
        ).format(w=_WIDTH, h=_HEIGHT, line=line, x=self.place(cell.value))


def interval_of(cell: Number) -> tuple[float, float] | None:
    """The interval; of a printed number, one spread to each side."""
    if cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    return None if cell.sd is None else (cell.value - cell.sd, cell.value + cell.sd)
