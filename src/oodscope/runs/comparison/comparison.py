"""Comparison: two detectors on the same images, and the sentence that may be quoted of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import overload

import pandas as pd
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from oodscope.document.html import block, note, notebook_parts
from oodscope.document.table import Column, Entry, Row, Table, columns, single_groups
from oodscope.document.wording import explanation, heading, higher_is_better, label
from oodscope.metrics.metric import MEAN
from oodscope.protocols.statements import POPULATION_WORDS, Statement

_QUOTED = 3

_WIDEST: tuple[Statement, ...] = ("networks", "classes", "images")
"""Statements, the one about the widest population first."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference of two detectors in one metric, on one OOD set or on the mean of a group, for one population.

    Parameters
    ----------
    statement : what is random: ``images`` (other images of these classes), ``classes`` (other OOD classes) or
        ``networks`` (other networks of the recipe).
    first_value, second_value : with equal weights of images, or of classes where classes are drawn anew.
    difference, low, high, level : first minus second, with its interval.
    p, p_adjusted, comparisons, family : two-sided; as it is, and adjusted for so many comparisons on this set.
    detectable : the smallest true difference that such data would show with probability 0.8.
    n_classes, n_networks : how many OOD classes and networks were drawn; 0 classes where these are fixed.
    """

    protocol: str
    metric: str
    statement: Statement
    group: str
    set: str
    first: str
    second: str
    first_value: float
    second_value: float
    difference: float
    low: float
    high: float
    level: float
    p: float
    p_adjusted: float
    comparisons: int
    family: str
    detectable: float
    n_id: int
    n_ood: int
    n_classes: int = 0
    n_networks: int = 1

    @property
    def column(self) -> Column:
        """Where it was measured."""
        return Column(self.group, self.set)

    @property
    def distinguishable(self) -> bool:
        """Whether the difference is more than noise, the other comparisons considered."""
        return self.p_adjusted < round(1.0 - self.level, 12)

    @property
    def population(self) -> str:
        """What the statement is about, and how much was drawn of it."""
        counts = [f"{self.n_classes} classes"] * bool(self.n_classes) + [f"{self.n_id + self.n_ood:,} images"]
        counts += [f"{self.n_networks} networks"] * (self.n_networks > 1)
        return f"for {POPULATION_WORDS[self.statement]} ({', '.join(counts)})"

    def __str__(self) -> str:
        groups = {"near": "near OOD", "far": "far OOD"}
        where = (
            groups.get(self.group, f"the mean of {self.group.replace('_', '-')} sets") if self.set == MEAN else self.set
        )
        # said as a gain of the better one, whichever came first and whichever way the metric points
        gain = 1.0 if higher_is_better(self.metric) else -1.0
        names = (self.first, self.second)
        if gain * self.difference < 0.0:
            gain, names = -gain, (self.second, self.first)
        low, high = sorted((gain * self.low, gain * self.high))
        family = f", {self.family} over {self.comparisons} comparisons" if self.comparisons > 1 else ""
        alone = " of the pair alone" if self.comparisons > 1 else ""
        ends = f"{points(low)} to {points(high)}"
        noise = f"{100 * self.level:g} % interval{alone} {ends}, {p_value(self.p_adjusted)}{family}"
        by = f"{points(gain * self.difference)} points of {label(self.metric)}"
        if self.distinguishable:
            return f"On {where}, {names[0]} beats {names[1]} by {by} ({noise}) {self.population}."
        return (
            f"On {where}, {names[0]} and {names[1]} are statistically indistinguishable: they differ by {by} ({noise}) "
            f"{self.population}; differences below {points(self.detectable)} points are invisible."
        )

    def _repr_html_(self) -> str:
        return block(f"<p>{escape(str(self))}</p>")


class Comparisons(Sequence[Comparison]):
    """Every pair on every set and group mean. It prints itself in a terminal (rich), sentences first.

    Parameters
    ----------
    notes : statements that cannot be made, and why.
    """

    def __init__(self, rows: Iterable[Comparison], notes: Iterable[str] = ()) -> None:
        self._rows = tuple(rows)
        self.notes = tuple(dict.fromkeys(notes))

    def sentences(self) -> list[str]:
        """What may be quoted: for each group mean, its best detector against the closest others (3 at most).

        Each speaks about the widest population that the data allow: networks, else OOD classes, else images.
        """
        found = []
        for column in dict.fromkeys(row.column for row in self._rows if row.set == MEAN):
            own = [row for row in self._rows if row.column == column]
            widest = next(each for each in _WIDEST if any(row.statement == each for row in own))
            rows = [row for row in own if row.statement == widest]
            sign = 1.0 if higher_is_better(rows[0].metric) else -1.0
            best = max(sign * value for row in rows for value in (row.first_value, row.second_value))
            led = [row for row in rows if best in (sign * row.first_value, sign * row.second_value)]
            # where each pair stands for itself (two runs, detector by detector) no leader meets them all
            chosen = led if len(led) > 1 else rows
            found += [str(row) for row in sorted(chosen, key=lambda row: abs(row.difference))[:_QUOTED]]
        return found

    def to_dataframe(self) -> pd.DataFrame:
        """One row each, as fractions."""
        return pd.DataFrame([asdict(row) for row in self._rows])

    def to_json(self, recommendations: Sequence[str] = ()) -> str:
        """Rows and sentences, for programs, beside what else was said of the run."""
        return json.dumps(
            {
                "comparisons": [asdict(row) for row in self._rows],
                "sentences": self.sentences(),
                "notes": list(self.notes),
                "recommendations": list(recommendations),
            }
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            return
        for sentence in self.sentences():
            yield Text(sentence)
        yield self.table()

    def _repr_html_(self) -> str:
        if not self._rows:
            return block(note("no comparison"))
        return block(*(f"<p>{escape(each)}</p>" for each in self.sentences()), *notebook_parts(self.table()))

    def table(self) -> Table:
        """Every comparison as a row: percent, differences in points; the mean of a single set is that set."""
        first = self._rows[0]
        families = " and ".join(dict.fromkeys(row.family for row in self._rows))
        heads = columns("first %", "second %", "difference", "interval", "p", "p adjusted", "visible")
        populations = "; ".join(
            f"{name}: {POPULATION_WORDS[name]}"
            for name in reversed(_WIDEST)
            if name in {r.statement for r in self._rows}
        )
        notes = (
            explanation(first.metric),
            f"Protocol {first.protocol}. Differences in points, first minus second, with {100 * first.level:g} % "
            f"intervals of each pair alone; bold: distinguishable after {families} over the {first.comparisons} "
            f"comparison{'s' if first.comparisons != 1 else ''} of a column. visible: the smallest true difference "
            f"that such data show in 8 of 10 cases. Population: {populations}.",
            *self.notes,
        )
        labels, rows = columns("first", "second", "on", "population"), tuple(map(_line, self._shown()))
        return Table("comparisons", heading(first.metric), labels, heads, rows, notes)

    def _shown(self) -> list[Comparison]:
        single = single_groups((row.group, row.set) for row in self._rows)
        return [row for row in self._rows if row.set != MEAN or row.group not in single]

    @overload
    def __getitem__(self, index: int) -> Comparison: ...
    @overload
    def __getitem__(self, index: slice) -> "Comparisons": ...
    def __getitem__(self, index: int | slice) -> "Comparison | Comparisons":
        return Comparisons(self._rows[index], self.notes) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Comparisons({len(self)} rows)"

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), "", str(self.table())])


def _line(row: Comparison) -> Row:
    cells = (
        Entry(f"{100 * row.first_value:.2f}", row.first_value),
        Entry(f"{100 * row.second_value:.2f}", row.second_value),
        Entry(f"{100 * row.difference:+.2f}", row.difference, strong=row.distinguishable),
        Entry(f"{100 * row.low:+.2f} to {100 * row.high:+.2f}"),
        Entry(_short_p(row.p), row.p),
        Entry(_short_p(row.p_adjusted), row.p_adjusted),
        Entry(f"{100 * row.detectable:.2f}", row.detectable),
    )
    labels = (Entry(row.first), Entry(row.second), Entry(row.column.words), Entry(row.statement))
    return Row(labels, cells)


def points(share: float) -> str:
    """A share as percentage points, to one decimal, or to two where one would show nothing."""
    text = f"{100 * share:.1f}"
    return text if text.lstrip("-") != "0.0" else f"{100 * share:.2f}".replace("-0.00", "0.00")


def p_value(p: float) -> str:
    """``p < 0.001`` or ``p = 0.032``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _short_p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
