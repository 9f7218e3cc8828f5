"""``oodscope data check``: look into every file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli.command import progress as shown_progress
from oodscope.cli.data.options import AsJson, Name
from oodscope.cli.options import OUTPUT, Root

SHOWN = 10


def check(
    name: Name,
    root: Root = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Write the whole report, as JSON, to this file."),
    ] = None,
) -> None:
    """Verify every file of a dataset: counted, decoded, hashed.

    What is complete is marked as ready. Ends with status 1 if a file is missing or broken, or a number is wrong. Sets
    that a benchmark can do without are passed over where they are missing.
    """
    from oodscope.base.files import write_text
    from oodscope.data.public.check import check_split
    from oodscope.data.public.needs import needs_of
    from oodscope.data.public.root import data_root
    from oodscope.data.public.state import State, state_of

    folder = data_root(root)
    progress = shown_progress()
    reports = [
        check_split(each.card, each.split, folder, progress)
        for each in needs_of(name)
        if not (each.optional and state_of(each.card, each.split, folder) is State.MISSING)
    ]
    content: dict[str, Any] = {
        "name": name,
        "root": str(folder),
        "ok": all(report.ok for report in reports),
        "splits": [report.as_json() for report in reports],
    }
    if output is not None:
        write_text(output, json.dumps(content, indent=1) + "\n")
    if as_json:
        typer.echo(json.dumps(content, indent=1))
    else:
        for split in content["splits"]:
            show_report(split)
    if not content["ok"]:
        raise typer.Exit(1)


def show_report(split: dict[str, Any]) -> None:
    """One line, and the first problems of each kind below it."""
    head = f"{split['dataset']}/{split['split']}: "
    if split["ok"]:
        trust = "" if split["checksums"] else " (unverified: no checksum is published)"
        typer.echo(f"{head}ready, {split['found']:,} images{trust}")
        return
    typer.echo(f"{head}{len(split['problems']):,} problem{'s' * (len(split['problems']) > 1)}")
    for kind in ("missing", "broken", "count"):
        of_kind = [problem for problem in split["problems"] if problem["kind"] == kind]
        for problem in of_kind[:SHOWN]:
            detail = f" ({problem['detail']})" if problem["detail"] else ""
            typer.echo(f"  {kind}: {problem['where']}{detail}")
        if len(of_kind) > SHOWN:
            typer.echo(f"  {kind}: {len(of_kind) - SHOWN:,} more; --output FILE lists all")
