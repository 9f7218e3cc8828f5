"""``oodscope data list``: benchmarks and datasets, and what of them is there."""

import json
from pathlib import Path
from typing import Any

import typer

from oodscope.cli.data.options import AsJson
from oodscope.cli.options import Root


def list_all(root: Root = None, as_json: AsJson = False) -> None:
    """List benchmarks and datasets, with their state.

    ready: verified and unchanged since. unverified: there, but never verified, or changed. partial: some of it is
    there. missing: nothing is.
    """
    from oodscope.data.public.root import data_root

    folder = data_root(root)
    listed = {"root": str(folder), **_overview(folder)}
    if as_json:
        typer.echo(json.dumps(listed, indent=1))
        return
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    for kind in ("benchmarks", "datasets"):
        table = Table(Column(kind, no_wrap=True), "state", "what it is", box=None, header_style="bold", pad_edge=False)
        for name, entry in listed[kind].items():
            table.add_row(name, entry["state"], entry["summary"])
        console.print(table)
        console.print()
    console.print(f"root: {folder}", markup=False, highlight=False, soft_wrap=True)


def _overview(folder: Path) -> dict[str, Any]:
    from oodscope.data.packaged import names_in
    from oodscope.data.public.cards import load_card
    from oodscope.data.public.needs import dataset_needs, overall, read_benchmark, states
    from oodscope.data.public.state import State

    known: dict[tuple[str, str], State] = {}
    benchmarks = {}
    for name in names_in("benchmarks"):
        manifest, wanted = read_benchmark(name)
        state = overall(states(wanted, folder, known))
        benchmarks[name] = {"state": str(state), "version": manifest.version, "summary": manifest.description}
    datasets = {
        name: {"state": str(overall(states(dataset_needs(name), folder, known))), "summary": load_card(name).summary}
        for name in names_in("datasets")
        if load_card(name).splits
    }
    return {"benchmarks": benchmarks, "datasets": datasets}
