"""The commands of ``oodscope``."""

from typing import Annotated

import typer

from oodscope import __version__
from oodscope.cli.attack import attack
from oodscope.cli.compare import compare
from oodscope.cli.crossval import crossval
from oodscope.cli.data import data
from oodscope.cli.demo.demo import demo
from oodscope.cli.evaluate import evaluate
from oodscope.cli.export import export
from oodscope.cli.figure import figure
from oodscope.cli.fit import fit
from oodscope.cli.generate import generate
from oodscope.cli.leaderboard import leaderboard
from oodscope.cli.listing import listing
from oodscope.cli.power import power
from oodscope.cli.predict import predict
from oodscope.cli.report import report
from oodscope.cli.run import run
from oodscope.cli.serve import serve
from oodscope.cli.table import table
from oodscope.cli.train import train

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
app.command()(report)
app.command()(figure)
app.command()(compare)
app.command()(power)
app.command()(crossval)
app.command()(attack)
app.command()(train)
app.command()(fit)
app.command()(predict)
app.command()(export)
app.command()(serve)
app.command("list")(listing)
app.add_typer(data)
app.add_typer(generate)
app.add_typer(leaderboard)


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
