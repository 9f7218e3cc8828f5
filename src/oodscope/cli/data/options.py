"""Options that the data commands share."""

from pathlib import Path
from typing import Annotated

import typer

Root = Annotated[Path | None, typer.Option(help="Folder of datasets; $OODSCOPE_ROOT, or the cache, unless given.")]
Name = Annotated[str, typer.Argument(help="A benchmark or a dataset of 'oodscope data list'.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
