"""``oodscope list``: what there is, at once."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from oodscope.base.catalog import catalog, plugins


class Kind(StrEnum):
    """What can be listed."""

    DETECTORS = "detectors"
    PROTOCOLS = "protocols"
    METRICS = "metrics"
    RUNS = "runs"
    BENCHMARKS = "benchmarks"
    MODELS = "models"
    RECIPES = "recipes"
    CORRUPTIONS = "corruptions"
    VARIATIONS = "variations"
    SAMPLERS = "samplers"
    SOURCES = "sources"
    FIGURES = "figures"
    FORMATS = "formats"


def listing(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List what has a name, such as detectors, protocols and benchmarks, with that of installed packages."""
    offered = {name: {"target": target, "summary": f"plugin {target}"} for name, target in plugins(kind).items()}
    entries: dict[str, dict[str, Any]] = {**catalog(kind), **offered}
    if as_json:
        typer.echo(json.dumps(entries, indent=1))
        return
    from rich.console import Console
    from rich.table import Column, Table

    columns = list(dict.fromkeys(key for entry in entries.values() for key in entry if key not in _HIDDEN))
    table = Table(
        Column("name", no_wrap=True),
        *(column.replace("_", " ") for column in columns),
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for name, entry in entries.items():
        table.add_row(name, *(_cell(entry.get(column, "")) for column in columns))
    Console().print(table)


_HIDDEN = ("target", "grid", "title", "parameters")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
