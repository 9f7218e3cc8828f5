"""``oodscope list``: what there is, at once."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from oodscope.base.catalog import catalog, plugins
from oodscope.cli.options import OUTPUT


class Kind(StrEnum):
    """What can be listed."""

    DETECTORS = "detectors"
    STREAM_DETECTORS = "stream_detectors"
    PROTOCOLS = "protocols"
    METRICS = "metrics"
    RUNS = "runs"
    BENCHMARKS = "benchmarks"
    MODELS = "models"
    RECIPES = "recipes"
    TRACKS = "tracks"
    CORRUPTIONS = "corruptions"
    VARIATIONS = "variations"
    SAMPLERS = "samplers"
    SOURCES = "sources"
    FIGURES = "figures"
    FORMATS = "formats"


COSTS = {
    "logits": "a function of the logits",
    "head": "products with the last layer",
    "moments": "class means and a covariance of the training features",
    "bank": "compares with stored training features",
    "training": "gradient descent when it is fitted",
    "passes": "further passes through the network for every image",
}
"""What the cost of a detector means."""


def listing(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print JSON, with parameters and grids.")
    ] = False,
) -> None:
    """List detectors, metrics, models and all else by name.

    What installed packages add is listed too.
    """
    added = {name: {"target": target, "summary": f"plugin {target}"} for name, target in plugins(kind).items()}
    entries: dict[str, dict[str, Any]] = {**catalog(kind), **added}
    if as_json:
        typer.echo(json.dumps(entries, indent=1))
        return
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    rows = {name: _LINES.get(kind, _other)(entry) for name, entry in entries.items()}
    heads = list(dict.fromkeys(head for row in rows.values() for head in row))
    last = heads[-1]
    table = Table(
        Column("name, cost" if kind is Kind.DETECTORS else "name", no_wrap=True),
        *(Column(head, no_wrap=head != last) for head in heads),
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for name, row in rows.items():
        cost = (
            Text(f"\n  {entries[name]['cost']}", style="dim")
            if kind is Kind.DETECTORS and "cost" in entries[name]
            else ""
        )
        table.add_row(Text(name).append(cost), *(Text(row.get(head, "")) for head in heads))
    console = Console()
    console.print(table)
    if kind is Kind.DETECTORS:
        used = dict.fromkeys(str(entry["cost"]) for entry in entries.values() if "cost" in entry)
        console.print()
        for cost in used:
            console.print(f"cost {cost}: {COSTS[cost]}", markup=False, highlight=False)


def _detector(entry: Mapping[str, Any]) -> dict[str, str]:
    """The title of the method and its paper, short enough for two lines of 80 columns."""
    title = str(entry.get("paper_title") or entry.get("summary", ""))
    short = re.sub("out-of-distribution", "OOD", title, flags=re.IGNORECASE)
    authors, _, venue = str(entry.get("paper", "")).rpartition(", ")
    first = re.split(r",| &", authors)[0]
    return {"method · paper": _joined(short, f"{first}{' et al.' * (first != authors)}, {venue}" if authors else "")}


def _recipe(entry: Mapping[str, Any]) -> dict[str, str]:
    """What it is, its paper, and how long its default settings took on one GPU, or that nobody measured it."""
    minutes = entry.get("gpu_minutes")
    took = (
        "GPU minutes not measured" if minutes is None else f"{round(minutes, 1 if minutes < 10 else 0):g} GPU minutes"
    )
    return {"what it trains · paper": _joined(_joined(entry.get("summary"), entry.get("paper")), took)}


def _protocol(entry: Mapping[str, Any]) -> dict[str, str]:
    headline = ", ".join(entry.get("headline", ()))
    return {"what it measures · headline metrics": _joined(entry.get("summary"), headline)}


def _metric(entry: Mapping[str, Any]) -> dict[str, str]:
    return {"better": entry.get("better", ""), "what it is": _joined(entry.get("label"), entry.get("summary"))}


def _figure(entry: Mapping[str, Any]) -> dict[str, str]:
    return {"paper · needs": _joined(f"{entry.get('paper', '')} {entry.get('number', '')}", entry.get("needs"))}


def _other(entry: Mapping[str, Any]) -> dict[str, str]:
    """One short fact where there is one, and the summary."""
    fact = next((key for key in ("family", "version", "of", "ending", "input_size") if entry.get(key)), None)
    return ({fact.replace("_", " "): str(entry[fact])} if fact else {}) | {
        "what it is": _plain(entry.get("summary", ""))
    }


_LINES = {
    Kind.DETECTORS: _detector,
    Kind.STREAM_DETECTORS: _detector,
    Kind.RECIPES: _recipe,
    Kind.PROTOCOLS: _protocol,
    Kind.METRICS: _metric,
    Kind.FIGURES: _figure,
}
"""How the entries of a kind are shown in a line or two; ``--json`` has everything."""


def _joined(*parts: Any) -> str:
    return " · ".join(_plain(part) for part in parts if part)


def _plain(text: Any) -> str:
    """A summary without the marks of a docstring."""
    return re.sub(r":math:`|`", "", str(text)).strip()
