"""The commands of ``oodscope``, in groups."""

from typing import Annotated, Any

import typer

from oodscope import __version__
from oodscope.cli.attack import attack
from oodscope.cli.cache import cache
from oodscope.cli.cite import cite
from oodscope.cli.command import RunningGroup, add, epilog
from oodscope.cli.compare import compare
from oodscope.cli.convert import convert
from oodscope.cli.crossval import crossval
from oodscope.cli.data import data
from oodscope.cli.demo.demo import demo
from oodscope.cli.evaluate import evaluate
from oodscope.cli.examples import EXAMPLES
from oodscope.cli.export import export
from oodscope.cli.figure import figure
from oodscope.cli.fit import fit
from oodscope.cli.generate import generate
from oodscope.cli.importing import importing
from oodscope.cli.leaderboard import leaderboard
from oodscope.cli.listing import listing
from oodscope.cli.monitor import monitor
from oodscope.cli.power import power
from oodscope.cli.precision import precision
from oodscope.cli.predict import predict
from oodscope.cli.report import report
from oodscope.cli.run import run
from oodscope.cli.serve import predict as serve_predict
from oodscope.cli.serve import serve
from oodscope.cli.stream import stream
from oodscope.cli.table import table
from oodscope.cli.token import token
from oodscope.cli.train import train
from oodscope.cli.work import plan, status, work

REFUSED: type[Any] = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it cannot parse; newer versions export no name for it."""

START, EVALUATE, READ, MAKE, DEPLOY, SHARE = "Start", "Evaluate", "Read results", "Make", "Deploy", "Share"
WORK = "Many machines"

_KEYWORDS = {"listing": "list", "importing": "import"}
"""Commands whose names Python keeps for itself."""

app = typer.Typer(
    name="oodscope",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, commands in {
    START: (demo, listing),
    EVALUATE: (evaluate, run, crossval, attack, stream, importing),
    READ: (table, compare, power, precision, report, figure, cite, convert),
    WORK: (plan, work, status),
    MAKE: (train,),
    DEPLOY: (fit, predict, monitor, export),
}.items():
    for command in commands:
        name = _KEYWORDS.get(command.__name__, command.__name__)
        add(app, command, panel, name=name, examples=EXAMPLES[name])
serving = typer.Typer(name="serve", cls=RunningGroup, invoke_without_command=True, rich_markup_mode="rich")
serving.callback(epilog=epilog(EXAMPLES["serve"]))(serve)
add(serving, serve_predict, name="predict", examples=EXAMPLES["serve predict"])
serving.add_typer(token)
app.add_typer(data, rich_help_panel=START)
app.add_typer(cache, rich_help_panel=WORK)
app.add_typer(generate, rich_help_panel=MAKE)
app.add_typer(serving, rich_help_panel=SHARE)
app.add_typer(leaderboard, rich_help_panel=SHARE)


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
    """Evaluate out-of-distribution detectors: which one to trust, how far, and where it breaks.

    'oodscope COMMAND -h' explains a command. Exit status: 0 done, 1 the work failed, 2 bad usage, 130 interrupted.
    """
