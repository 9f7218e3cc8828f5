"""``oodscope predict``: classify single images with a detector that was fitted before."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading, progress
from oodscope.cli.options import separated


def predict(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    model: options.OwnModel = "",
    weights: options.FileWeights = None,
    allow_download: options.AllowDownload = False,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=options.OUTPUT, help="Print one JSON object per line and image.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", rich_help_panel=options.OUTPUT, help="Print CSV.")] = False,
    batch_size: options.BatchSize = 64,
    device: options.Device = "auto",
) -> None:
    """Classify images and flag those that look OOD.

    Unreadable images are reported and do not stop the others; the exit status is then 1. A rejection is not an error.
    """
    from oodscope.base.errors import UsageError

    if as_json and as_csv:
        raise UsageError("predict: --json or --csv, not both")
    loading()

    from oodscope.cli.verdicts import as_lines, as_table, judge_files
    from oodscope.jobs.fit import load_fitted

    scorer = load_fitted(detector, model, separated(weights), device, allow_download=allow_download)
    rows = judge_files(scorer, images, batch_size, progress())
    failed = as_lines(rows, "json" if as_json else "csv") if as_json or as_csv else as_table(rows, scorer)
    if failed:
        typer.echo(f"oodscope: {failed} image{'s' * (failed > 1)} could not be read", err=True)
        raise typer.Exit(1)
