"""The formats of tables: each has one writer, and every table can be written in each."""

from collections.abc import Callable
from dataclasses import dataclass

from oodscope.base.errors import UnknownNameError
from oodscope.document import csv, html, json, latex, terminal, text
from oodscope.document.table import Table


@dataclass(frozen=True)
class Format:
    """How a table is written, and the ending of such a file."""

    ending: str
    write: Callable[[Table], str]


FORMATS = {
    "rich": Format("txt", terminal.as_text),
    "markdown": Format("md", text.markdown),
    "csv": Format("csv", csv.csv),
    "json": Format("json", json.json),
    "latex": Format("tex", latex.latex),
    "html": Format("html", html.notebook),
}


def format_of(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise UnknownNameError("table format", name, FORMATS, f"Known: {', '.join(FORMATS)}")
    return FORMATS[name]
