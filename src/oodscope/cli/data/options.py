"""Options that the data commands share."""

from typing import Annotated

import typer

from oodscope.cli.choices import complete
from oodscope.cli.options import OUTPUT

Name = Annotated[
    str,
    typer.Argument(help="A benchmark or a dataset of 'oodscope data list'.", autocompletion=complete("benchmarks")),
]
AsJson = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print JSON in place of text.")]
