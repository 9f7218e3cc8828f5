"""``oodscope generate``: images, and what draws them."""

import typer

from oodscope.cli.generate.gan import gan

generate = typer.Typer(
    name="generate",
    help="Make images to judge detectors on: train a generator of outliers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
generate.command()(gan)
