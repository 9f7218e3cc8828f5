"""The table people publish: rows are detectors, columns are sets, in the format the reader needs."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult

from oodscope.base.errors import UnknownNameError
from oodscope.document import html, latex, terminal
from oodscope.document import text as plaintext
from oodscope.document.grid import Grid

FORMATS: dict[str, Callable[[Grid], str]] = {
    "rich": terminal.as_text,
    "markdown": plaintext.markdown,
    "csv": plaintext.csv,
    "json": plaintext.json,
    "latex": latex.latex,
}


@dataclass(frozen=True)
class Table:
    """One metric under one protocol. It prints itself in a terminal (rich) and in a notebook."""

    grid: Grid

    def render(self, format: str) -> str:
        """The table as ``rich`` text, ``markdown``, ``csv``, ``json`` or ``latex``.

        CSV and JSON hold fractions in full precision, for programs; the others percent, for people.
        """
        if format not in FORMATS:
            raise UnknownNameError("table format", format, FORMATS)
        return FORMATS[format](self.grid)

    def __str__(self) -> str:
        return self.render("rich")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from terminal.draw(self.grid, console, options)

    def _repr_html_(self) -> str:
        return html.notebook(self.grid)
