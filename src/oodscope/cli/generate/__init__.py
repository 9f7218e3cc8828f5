"""``oodscope generate``: images, and what draws them."""

import typer

from oodscope.cli.generate.again import again
from oodscope.cli.generate.gan import gan
from oodscope.cli.generate.near import near
from oodscope.cli.generate.shifted import shifted

generate = typer.Typer(
    name="generate",
    help="Make images to judge detectors on: a generator of outliers, near outliers, shifted images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
generate.command()(gan)
generate.command()(near)
generate.command()(shifted)
generate.command()(again)
