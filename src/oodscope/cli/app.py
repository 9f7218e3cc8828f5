"""The commands of ``oodscope``."""

from typing import Annotated

import typer

from oodscope import __version__
from oodscope.cli.data_audit import audit
from oodscope.cli.demo import demo
from oodscope.cli.evaluate import evaluate
from oodscope.cli.listing import listing
from oodscope.cli.run import run
from oodscope.cli.table import table

app = typer.Typer(
    name="oodscope",
    help="Judge out-of-distribution detectors: which one to trust, how far, and where it breaks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(evaluate)
app.command()(run)
app.command()(table)
app.command("list")(listing)
data = typer.Typer(help="Look after benchmarks and their images.", no_args_is_help=True)
app.add_typer(data, name="data")
data.command()(audit)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oodscope {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Judge out-of-distribution detectors: which one to trust, how far, and where it breaks."""
