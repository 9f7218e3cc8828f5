"""``oodscope report``: one page over runs of every kind."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs of any kind (evaluations, attacks, studies, audits), or one that holds several."
        ),
    ],
    output: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading; benchmarks and models unless given.")] = "",
) -> None:
    """Write one HTML file over all runs: verdict, scorecard, tables, plots, pictures, provenance.

    The file holds everything it shows; it needs a browser and no network.
    """
    from oodscope.base.errors import OodscopeError
    from oodscope.report.page.page import write_report
    from oodscope.results.opening import open_runs

    if output.suffix.lower() not in (".html", ".htm"):
        raise OodscopeError(f"{output}: the report is an HTML file; give it a name such as report.html")
    typer.echo(f"report: {write_report(open_runs(runs), output, title=title or None)}")
