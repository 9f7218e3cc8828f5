"""``oodscope report``: one page over runs of every kind."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs of any kind (evaluations, attacks, studies, audits), or one that holds several."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", rich_help_panel=options.OUTPUT, help="The HTML file to write.")
    ] = Path("report.html"),
    title: Annotated[
        str, typer.Option(rich_help_panel=options.OUTPUT, help="Its heading; benchmarks and models unless given.")
    ] = "",
) -> None:
    """Write one HTML report over runs of every kind.

    Verdict, scorecard, tables, plots, images and provenance in one file, which needs a browser and no network.
    """
    from oodscope.base.errors import UsageError

    if output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output}: the report is an HTML file; give it a name such as report.html")
    loading()

    from oodscope.report.page.page import write_report
    from oodscope.results.opening import open_runs

    typer.echo(f"report: {write_report(open_runs(runs), output, title=title or None)}")
