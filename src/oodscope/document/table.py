"""Table: labelled rows of numbers and texts under named columns; every table of the package is one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderResult

from oodscope.document.number import Number
from oodscope.document.wording import places
from oodscope.metrics.metric import MEAN

GROUPS = ("near", "far", "csid", "id", "all", "label_shift", "input_shift")
"""Groups that sets belong to by their role; any other is a variation that one set was attacked by."""


def single_groups(columns: Iterable[tuple[str, str]]) -> set[str]:
    """Groups of one set, from pairs of group and set: the mean of such a group is that set, and is shown once."""
    sets = {(group, name) for group, name in columns if name != MEAN}
    return {group for group, count in Counter(group for group, _ in sets).items() if count == 1}


@dataclass(frozen=True)
class Entry:
    """A text in one place of a table, and what programs read there.

    Parameters
    ----------
    text : for people.
    value : for programs; the text by default.
    strong : set in bold.
    """

    text: str
    value: float | int | str | None = None
    strong: bool = False

    @property
    def content(self) -> float | int | str:
        """What programs read."""
        return self.text if self.value is None else self.value


Cell = Number | Entry | None
"""What stands in one place; None where nothing was measured."""


@dataclass(frozen=True)
class Column:
    """A column, such as a set or the mean over a group of sets.

    Parameters
    ----------
    group : what it stands under together with its neighbours; empty if under nothing.
    name : its head below the group.
    key : how programs call it; ``group/name`` by default.
    words : how one line of text calls it; by default the set, ``near mean``, or the set with the variation that it
        was attacked by.
    """

    group: str
    name: str
    key: str = ""
    words: str = ""

    def __post_init__(self) -> None:
        key = f"{self.group}/{self.name}" if self.group else self.name
        object.__setattr__(self, "key", self.key or key)
        object.__setattr__(self, "words", self.words or self._in_words())

    def _in_words(self) -> str:
        if not self.group:
            return self.name
        if self.name == MEAN:
            return f"{self.group} mean"
        return self.name if self.group in GROUPS else f"{self.name}, {self.group}"


def columns(*names: str) -> tuple[Column, ...]:
    """Columns under no group."""
    return tuple(Column("", name) for name in names)


@dataclass(frozen=True)
class Row:
    """What a line is about, such as a detector, and one cell for each column.

    Parameters
    ----------
    section : the part of the table that it belongs to, such as the tuning track; see ``Table.sections``.
    """

    labels: tuple[Entry, ...]
    cells: tuple[Cell, ...]
    section: str = ""

    @property
    def name(self) -> str:
        """Its first label, as programs read it."""
        return str(self.labels[0].content)

    @property
    def numbers(self) -> tuple[Number | None, ...]:
        """Its cells; a text counts as not measured."""
        return tuple(cell if isinstance(cell, Number) else None for cell in self.cells)

    @property
    def rank(self) -> tuple[int, int] | None:
        """Best and worst rank that its first column allows."""
        return self.cells[0].rank if self.cells and isinstance(self.cells[0], Number) else None

    @property
    def places(self) -> str:
        """The same for people: ``1–3``, or ``2`` if there is no doubt."""
        return places(self.rank)


@dataclass(frozen=True)
class Table:
    """A titled table. It prints itself in a terminal (rich) and in a notebook, and renders in every format.

    Parameters
    ----------
    name : of its files, without the ending.
    labels : the heads of the labels, left of the numbers.
    columns : the heads of the cells; those of one group stand together.
    accuracy : of the classifier on each set, stated below the table.
    facts : what holds for the whole table, such as protocol and metric; for programs.
    section : what the sections are, such as ``tuning``.
    sections : each section in words, such as ``default: default parameters``.
    """

    name: str
    title: str
    labels: tuple[Column, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    accuracy: tuple[tuple[str, Number], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    section: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            if (len(row.labels), len(row.cells)) != (len(self.labels), len(self.columns)):
                raise ValueError(f"table {self.name}: a row of other columns: {row}")

    @property
    def ranked(self) -> bool:
        """Whether paired tests gave its rows ranks."""
        return any(row.rank is not None for row in self.rows)

    @property
    def grouped(self) -> bool:
        """Whether its columns have heads in common."""
        return any(column.group for column in self.columns)

    def parts(self) -> list[tuple[str, list[Row]]]:
        """The rows of each section that occurs, with its name in words."""
        present = dict.fromkeys(row.section for row in self.rows)
        return [(self.sections.get(key, key), [row for row in self.rows if row.section == key]) for key in present]

    def groups(self) -> list[tuple[str, int]]:
        """Each group of columns and how many it has."""
        return spans(column.group for column in self.columns)

    def only(self, places: Sequence[int]) -> "Table":
        """The same table with some of its columns."""
        rows = (replace(row, cells=tuple(row.cells[place] for place in places)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=tuple(rows))

    def for_people(self) -> "Table":
        """The same table without the mean over a group of one set, which repeats that set; programs read both.

        The column is then called like the set, and keeps the rank and the interval of the mean.
        """
        repeated: dict[int, int] = {}
        single = single_groups((column.group, column.name) for column in self.columns)
        for place, column in enumerate(self.columns):
            if column.name == MEAN and column.group and column.group in single:
                members = [each for each, other in enumerate(self.columns) if other.group == column.group]
                one = next(each for each in members if each != place)
                if all(_value(row.cells[place]) == _value(row.cells[one]) for row in self.rows):
                    repeated[place] = one
        if not repeated:
            return self
        columns = list(self.columns)
        for place, one in repeated.items():
            columns[place] = replace(columns[one], key=columns[place].key)
        dropped = set(repeated.values())
        named = replace(self, columns=tuple(columns))
        return named.only([place for place in range(len(columns)) if place not in dropped])

    def render(self, format: str) -> str:
        """The table as ``rich`` text, ``markdown``, ``csv``, ``json``, ``latex`` or ``html``.

        CSV and JSON hold fractions in full precision, for programs; the others percent, for people.
        """
        from oodscope.document.formats import FORMATS  # whose writers are made for tables

        return FORMATS[format].write(self)

    def __str__(self) -> str:
        return self.render("rich")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from oodscope.document.terminal import draw  # which is made for tables

        yield from draw(self, console, options)

    def _repr_html_(self) -> str:
        return self.render("html")


def _value(cell: Cell) -> object:
    return cell.value if isinstance(cell, Number) else cell


def spans(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name of a head that reaches over several columns, and how many it has."""
    return [(name, len(list(same))) for name, same in groupby(names)]
