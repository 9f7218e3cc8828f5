"""``oodscope predict``: judge single images with a detector that was fitted before."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.options import separated


def predict(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    model: Annotated[str, typer.Option(help="python:MODULE:FUNCTION, where the network is your own.")] = "",
    weights: Annotated[str, typer.Option(help="The network's weights, where the file does not hold them.")] = "",
    allow_download: options.AllowDownload = False,
    batch_size: options.BatchSize = 64,
    device: options.Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line and image.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Classify images and flag those that look out-of-distribution.

    Unreadable images are reported and do not stop the others; the exit status is then 1. A rejected image is no error.
    """
    from oodscope.base.errors import OodscopeError
    from oodscope.cli.verdicts import as_lines, as_table, judge_files
    from oodscope.jobs.fit import load_fitted

    if as_json and as_csv:
        raise OodscopeError("predict: --json or --csv, not both")
    scorer = load_fitted(detector, model, separated(weights), device, allow_download=allow_download)
    rows = judge_files(scorer, images, batch_size)
    failed = as_lines(rows, "json" if as_json else "csv") if as_json or as_csv else as_table(rows, scorer)
    if failed:
        typer.echo(f"oodscope: {failed} image{'s' * (failed > 1)} could not be read", err=True)
        raise typer.Exit(1)
