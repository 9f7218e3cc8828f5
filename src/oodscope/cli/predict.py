"""``oodscope predict``: judge single images with a detector that was fitted before."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.base.errors import OodscopeError


def predict(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    weights: Annotated[str, typer.Option(help="The network's weights, where the file does not hold them.")] = "",
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.", min=1)] = 64,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line and image.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Say of each image what it shows, how foreign it looks, and whether to accept it.

    Unreadable images are reported and do not stop the others; the exit status is then 1. A rejected image is no error.
    """
    from oodscope.cli.verdicts import Rows, as_lines, as_table, judge_files
    from oodscope.deploy.artefact import load

    if as_json and as_csv:
        raise OodscopeError("predict: --json or --csv, not both")
    scorer = load(detector, weights=[name.strip() for name in weights.split(",") if name.strip()], device=device)
    rows: Rows = judge_files(scorer, images, batch_size)
    failed = as_lines(rows, "json" if as_json else "csv") if as_json or as_csv else as_table(rows, scorer)
    if failed:
        typer.echo(f"oodscope: {failed} image{'s' * (failed > 1)} could not be read", err=True)
        raise typer.Exit(1)
