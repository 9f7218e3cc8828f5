"""The formats of tables: each has one writer, and every table can be written in each."""

from collections.abc import Callable
from dataclasses import dataclass

from oodscope.base.registry import Collection
from oodscope.document import csv, html, json, latex, terminal, text
from oodscope.document.table import Table


@dataclass(frozen=True)
class Format:
    """How a table is written, the ending of such a file, and what it is in a few words."""

    ending: str
    write: Callable[[Table], str]
    summary: str = ""


FORMATS: Collection[Format] = Collection(
    "table format",
    "formats",
    {
        "rich": Format("txt", terminal.as_text, "as in a terminal, without colours"),
        "markdown": Format("md", text.markdown, "a Markdown table"),
        "csv": Format("csv", csv.csv, "comma-separated values, full precision"),
        "json": Format("json", json.json, "cells with value and interval"),
        "latex": Format("tex", latex.latex, "a LaTeX tabular"),
        "html": Format("html", html.notebook, "as notebooks show it"),
    },
    check=lambda each: isinstance(each, Format),
    expected="a Format of oodscope.document.formats",
)
"""Every format by name."""
