"""Grid: the numbers of a published table, before any format is applied."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from oodscope.document.wording import CLOSE, EXPOSED, TRACKS, places, shown, span
from oodscope.metrics.metric import MEAN, Tuning, Unit

GROUPS = ("near", "far", "csid", "id", "all", "label_shift", "input_shift")
"""Groups that sets belong to by their role; any other is a variation that one set was attacked by."""


@dataclass(frozen=True)
class Cell:
    """A value with its interval; ``best`` of its column and track, or too ``close`` to the best to tell.

    Parameters
    ----------
    class_low, class_high : the interval over classes, where one was measured.
    rank : best and worst rank that paired tests allow; group means of AUROC have one.
    sd : standard deviation over runs, where the value is a mean of several.
    exposure : which of the images the network had met before; empty if none is known.
    unit : how people read the value.
    """

    value: float
    low: float | None
    high: float | None
    best: bool = False
    close: bool = False
    class_low: float | None = None
    class_high: float | None = None
    rank: tuple[int, int] | None = None
    sd: float | None = None
    exposure: str = ""
    unit: Unit = "percent"

    @property
    def number(self) -> str:
        """The value in its unit, with its spread over runs if it has one: ``88.03`` or ``88.03±0.31``."""
        return shown(self.value, self.unit) + ("" if self.sd is None else f"±{shown(self.sd, self.unit)}")

    @property
    def marks(self) -> str:
        """What stands beside the value: close to the best, measured on images met before."""
        return (CLOSE if self.close else "") + (EXPOSED if self.exposure else "")

    @property
    def text(self) -> str:
        """The value in its unit with its marks."""
        return self.number + self.marks

    @property
    def interval(self) -> str:
        """``87.2–88.8``, or nothing where no interval was measured."""
        if self.low is None or self.high is None:
            return ""
        if self.unit != "percent":
            return "–".join(shown(end, self.unit) for end in (self.low, self.high))
        return span(self.low, self.high)

    @property
    def class_interval(self) -> str:
        """The interval over classes, in the form of ``interval``."""
        return "" if self.class_low is None or self.class_high is None else span(self.class_low, self.class_high)

    @property
    def brackets(self) -> str:
        """``[87.2, 88.8]``: the form of papers."""
        return f"[{self.interval.replace('–', ', ')}]" if self.interval else ""

    def overlaps(self, other: "Cell") -> bool:
        """Whether both have intervals and these share a point."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return False
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Column:
    """A set, or the mean over a group of sets."""

    group: str
    set: str

    @property
    def name(self) -> str:
        """How text calls it: the set, ``near mean``, or the set with the variation that it was attacked by."""
        if self.set == MEAN:
            return f"{self.group} mean"
        return self.set if self.group in GROUPS else f"{self.set}, {self.group}"


@dataclass(frozen=True)
class Row:
    """A detector, how it was tuned, and one cell per column (``None``: not measured)."""

    detector: str
    tuning: Tuning
    cells: tuple[Cell | None, ...]

    @property
    def rank(self) -> str:
        """The ranks that its first column allows: ``1–3``, or ``2`` if there is no doubt."""
        return "" if self.cells[0] is None else places(self.cells[0].rank)


@dataclass(frozen=True)
class Grid:
    """Rows of detectors, best first by the first column; columns grouped, each group led by its mean."""

    protocol: str
    metric: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    accuracy: tuple[tuple[str, Cell], ...]
    notes: tuple[str, ...]

    @property
    def ranked(self) -> bool:
        """Whether paired tests gave its rows ranks."""
        return any(row.rank for row in self.rows)

    def tracks(self) -> list[tuple[str, list[Row]]]:
        """The rows of each tuning track that occurs, with its name in words."""
        present = dict.fromkeys(row.tuning for row in self.rows)
        return [(TRACKS[track], [row for row in self.rows if row.tuning == track]) for track in present]

    def groups(self) -> list[tuple[str, int]]:
        """Each group of columns and how many it has."""
        return spans(column.group for column in self.columns)


def spans(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name of a head that reaches over several columns, and how many it has."""
    return list(Counter(names).items())
