"""Sheet: a plain table of labels and entries that is not one of detectors against sets, in every format."""

import csv as csv_module
import io
from dataclasses import dataclass
from html import escape
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from oodscope.base.errors import UnknownNameError
from oodscope.document import latex as latex_text
from oodscope.document import text as plaintext
from oodscope.document.html import block, note

FORMATS = {"csv": "csv", "markdown": "md", "latex": "tex"}
"""The formats of a sheet, and the ending of their files."""


@dataclass(frozen=True)
class Entry:
    """What stands in one place: as people read it, and as programs do.

    Parameters
    ----------
    text : for people.
    value : for the CSV; the text by default.
    strong : set in bold.
    """

    text: str
    value: float | int | str | None = None
    strong: bool = False


@dataclass(frozen=True)
class Sheet:
    """A titled table.

    Parameters
    ----------
    name : of its files, without the ending.
    columns : the heads, those of the labels first.
    labels : how many leading columns are labels; they are read as text and set flush left.
    rows : one entry per column.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()

    def render(self, format: str) -> str:
        """The sheet as ``csv``, ``markdown`` or ``latex``."""
        if format not in FORMATS:
            raise UnknownNameError("format of this table", format, FORMATS, f"Known: {', '.join(FORMATS)}")
        return {"csv": self.csv, "markdown": self.markdown, "latex": self.latex}[format]()

    def csv(self) -> str:
        """For programs: values in full precision, no notes."""
        stream = io.StringIO()
        writer = csv_module.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([entry.text if entry.value is None else entry.value for entry in row])
        return stream.getvalue()

    def markdown(self) -> str:
        """For a README, with its notes below."""
        heads = [plaintext.escaped(name) for name in self.columns]
        rules = ["---"] * self.labels + ["---:"] * (len(self.columns) - self.labels)
        lines = [heads, rules]
        for row in self.rows:
            texts = [(plaintext.escaped(entry.text), entry.strong) for entry in row]
            lines.append([f"**{text}**" if strong else text for text, strong in texts])
        table = [f"| {' | '.join(line)} |" for line in lines]
        below = [f"{plaintext.escaped(note)}  " for note in self.notes]
        return "\n".join([plaintext.escaped(self.title), "", *table, "", *below]).rstrip() + "\n"

    def latex(self) -> str:
        """For a paper, in the manner of booktabs."""
        lines = [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text.escaped(self.title)}.}}",
            rf"\begin{{tabular}}{{{'l' * self.labels}{'r' * (len(self.columns) - self.labels)}}}",
            r"\toprule",
            " & ".join(map(latex_text.escaped, self.columns)) + r" \\",
            r"\midrule",
            *(" & ".join(map(_latex_entry, row)) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\smallskip\footnotesize {latex_text.escaped(note)}" for note in self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """The bare table; every number is also there in full, as ``data-value``."""
        heads = "".join(f'<th scope="col"{_text(i < self.labels)}>{escape(n)}</th>' for i, n in enumerate(self.columns))
        lines = []
        for row in self.rows:
            cells = [f'<th scope="row">{escape(row[0].text)}</th>']
            cells += [_html_entry(entry, index < self.labels) for index, entry in enumerate(row[1:], start=1)]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return f'<table class="sheet"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.title, style="bold")
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for index, name in enumerate(self.columns):
            # a name may be broken over lines, a number may not
            widest = 0 if index < self.labels else max((len(row[index].text) for row in self.rows), default=0)
            side: Literal["left", "right"] = "left" if index < self.labels else "right"
            table.add_column(Text(name), justify=side, overflow="fold", min_width=widest or None)
        for row in self.rows:
            table.add_row(*(Text(entry.text, style="bold" if entry.strong else "") for entry in row))
        yield table
        for line in self.notes:
            yield Text(line, style="dim")

    def _repr_html_(self) -> str:
        return block(*self.notebook_parts())

    def notebook_parts(self) -> list[str]:
        """Title, table and notes as HTML, for an output of a notebook that shows several tables."""
        return [f"<p><b>{escape(self.title)}</b></p>", self.html(), *map(note, self.notes)]


def _latex_entry(entry: Entry) -> str:
    # a hyphen is too short for a minus, and digits in a formula would not be set in bold
    negative = entry.text.startswith("-") and entry.text[1:].isdigit()
    text = f"$-${entry.text[1:]}" if negative else latex_text.escaped(entry.text)
    return rf"\textbf{{{text}}}" if entry.strong else text


def _html_entry(entry: Entry, label: bool) -> str:
    value = "" if entry.value is None or isinstance(entry.value, str) else f' data-value="{entry.value!r}"'
    text = escape(entry.text)
    return f"<td{_text(label)}{value}>{f'<b>{text}</b>' if entry.strong else text}</td>"


def _text(label: bool) -> str:
    return ' class="label"' if label else ""
