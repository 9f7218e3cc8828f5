"""Number: a value with what people and programs need to know of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from oodscope.document.wording import CLOSE, DOUBTED, EXPOSED, shown, span
from oodscope.metrics.metric import Unit


@dataclass(frozen=True)
class Number:
    """A value with its noise; ``best`` of its column and section, or too ``close`` to the best to call.

    Parameters
    ----------
    low, high : its interval, where one was measured.
    best, close, worst : its place in the column; a column of one row has neither best nor worst.
    class_low, class_high : the interval over classes, where one was measured.
    rank : best and worst rank that paired tests allow; group means of AUROC have one.
    may_be_best : whether it may be the best of its column; ``None`` where that was not tested.
    population : what rank and ``may_be_best`` are about, such as ``other OOD classes``; empty where nobody said.
    sd : standard deviation over runs, where the value is a mean of several.
    standard_error : of the value, where that is what is known of its noise.
    exposure : which of the images the network had met before; empty if none is known.
    doubts : reasons not to trust it, such as a search that stopped early.
    unit : how people read the value.
    """

    value: float
    low: float | None = None
    high: float | None = None
    best: bool = False
    close: bool = False
    class_low: float | None = None
    class_high: float | None = None
    rank: tuple[int, int] | None = None
    sd: float | None = None
    exposure: str = ""
    unit: Unit = "percent"
    standard_error: float | None = None
    worst: bool = False
    doubts: tuple[str, ...] = ()
    may_be_best: bool | None = None
    population: str = ""

    @property
    def number(self) -> str:
        """The value in its unit, with the spread that it has: ``88.03``, ``88.03±0.31`` (sd), ``1,609 ± 85`` (se)."""
        sd = "" if self.sd is None else f"±{shown(self.sd, self.unit)}"
        error = "" if self.standard_error is None else f" ± {shown(self.standard_error, self.unit)}"
        return shown(self.value, self.unit) + sd + error

    @property
    def marks(self) -> str:
        """What stands beside the value: close to the best, measured on images met before, doubted."""
        return (CLOSE if self.close else "") + (EXPOSED if self.exposure else "") + (DOUBTED if self.doubts else "")

    @property
    def text(self) -> str:
        """The value in its unit with its marks."""
        return self.number + self.marks

    @property
    def interval(self) -> str:
        """``87.2–88.8``; nothing where no interval was measured, or where a standard error is shown in its place."""
        if self.low is None or self.high is None or self.standard_error is not None:
            return ""
        if self.unit != "percent":
            return "–".join(shown(end, self.unit) for end in (self.low, self.high))
        return span(self.low, self.high)

    @property
    def short(self) -> str:
        """One decimal and the distance to the farther end of the interval: ``91.7 ±0.9``; in full without either.

        Rounded up, so that the interval shown holds the measured one.
        """
        if self.unit != "percent" or self.sd is not None or not self.interval:
            return self.text
        assert self.low is not None and self.high is not None, "there is an interval"
        reach = ceil(round(1000 * max(self.high - self.value, self.value - self.low), 6)) / 10
        return f"{100 * self.value:.1f} ±{reach:.1f}{self.marks}"

    @property
    def class_interval(self) -> str:
        """The interval over classes, in the form of ``interval``."""
        return "" if self.class_low is None or self.class_high is None else span(self.class_low, self.class_high)

    @property
    def brackets(self) -> str:
        """``[87.2, 88.8]``: the form of papers."""
        return f"[{self.interval.replace('–', ', ')}]" if self.interval else ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """All that a reader must know beside the value: both intervals, exposure and doubts, each in words."""
        wide = f"95 % interval for other OOD classes: {self.class_interval}" if self.class_interval else ""
        narrow = f"for other images of these classes: {self.interval}" if self.interval and wide else ""
        exposure = f"images met in training: {self.exposure}" if self.exposure else ""
        return tuple(filter(None, (wide, narrow, exposure, *self.doubts)))

    def __html__(self) -> str:
        """The value with its marks and its interval: what every page shows where it is given a number."""
        from oodscope.document.html import number_html  # which is made for numbers

        return number_html(self)

    def overlaps(self, other: "Number") -> bool:
        """Whether their intervals share a point: those for other classes where both have them, else the others."""
        for low, high, other_low, other_high in (
            (self.class_low, self.class_high, other.class_low, other.class_high),
            (self.low, self.high, other.low, other.high),
        ):
            if low is not None and high is not None and other_low is not None and other_high is not None:
                return low <= other_high and other_low <= high
        return False


def marked(column: Sequence[Number | None], higher: bool) -> list[Number | None]:
    """A column with its best marked, and those whose intervals overlap with it.

    Where fewer than two were measured nothing is best.

    Parameters
    ----------
    higher : whether more is better.
    """
    present = [number for number in column if number is not None]
    if len(present) < 2:
        return list(column)
    best = (max if higher else min)(present, key=lambda number: number.value)

    def with_marks(number: Number) -> Number:
        leads = number.value == best.value
        return replace(number, best=leads, close=not leads and number.overlaps(best))

    return [None if number is None else with_marks(number) for number in column]
