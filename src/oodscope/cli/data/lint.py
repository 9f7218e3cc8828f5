"""``oodscope data lint``: what is wrong with a benchmark's YAML file, all at once."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from oodscope.cli.choices import complete
from oodscope.cli.command import progress
from oodscope.cli.data.options import AsJson
from oodscope.cli.options import DATA, Root


def lint(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A YAML file, or a name of 'oodscope list benchmarks'.", autocompletion=complete("benchmarks")
        ),
    ],
    root: Root = None,
    declaration_only: Annotated[
        bool,
        typer.Option(
            "--declaration-only", rich_help_panel=DATA, help="Read the file alone; open none of the sets it declares."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a benchmark's YAML file, and the sets it declares.

    Says everything at once: missing roles, images that are tuned and tested on, counts, OOD classes with the name of an
    ID class, images that occur twice. Ends with status 1 if there is an error; warnings alone do not count.
    """
    from oodscope.data.lint import lint as look

    findings = look(benchmark, root=root, images=not declaration_only, progress=progress())
    errors = sum(each.level == "error" for each in findings)
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in findings], indent=1))
    else:
        for each in findings:
            typer.echo(str(each))
        typer.echo(f"{benchmark}: {errors} errors, {len(findings) - errors} warnings")
    if errors:
        raise typer.Exit(1)
