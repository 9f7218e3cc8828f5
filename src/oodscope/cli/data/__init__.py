"""``oodscope data``: the public datasets that benchmarks are made of."""

import typer

from oodscope.cli.data.audit import audit
from oodscope.cli.data.check import check
from oodscope.cli.data.list import list_all
from oodscope.cli.data.prepare import prepare
from oodscope.cli.data.show import show

data = typer.Typer(
    name="data",
    help="Public datasets: what there is, what is missing, get it, look it over, audit it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
data.command("list")(list_all)
data.command()(show)
data.command()(prepare)
data.command()(check)
data.command()(audit)
