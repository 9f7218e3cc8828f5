"""``oodscope predict``: classify single images with a detector that was fitted before."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.command import loading, progress
from oodscope.cli.options import separated

BATCH = "Batch"


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
    fdr: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=BATCH,
            help="Flag outliers of the whole batch, at most this share of them falsely, in place of the threshold.",
        ),
    ] = None,
    fdr_confidence: Annotated[
        float | None,
        typer.Option(rich_help_panel=BATCH, help="Let --fdr hold for this share of calibration sets; flags fewer."),
    ] = None,
    csid: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=BATCH,
            help="Covariate-shifted ID images (files, folders): how many of them --fdr would flag too.",
        ),
    ] = None,
    batch_size: options.BatchSize = 64,
    device: options.Device = "auto",
) -> None:
    """Classify images and flag those that look OOD.

    Unreadable images are reported and do not stop the others; the exit status is then 1. A rejection is not an error.
    With --fdr all images are one batch, which is decided as a whole (Benjamini-Hochberg on conformal p-values).
    """
    from oodscope.base.errors import UsageError

    if as_json and as_csv:
        raise UsageError("predict: --json or --csv, not both")
    if fdr is None and (fdr_confidence is not None or csid):
        raise UsageError(f"predict: {'--csid' if csid else '--fdr-confidence'} belongs to --fdr; add --fdr 0.1")
    for option, value in (("--fdr", fdr), ("--fdr-confidence", fdr_confidence)):
        if value is not None and not 0 < value < 1:
            raise UsageError(f"predict: {option} lies between 0 and 1; it is {value:g}")
    loading()

    from oodscope.cli.verdicts import as_lines, as_table, decide_batch, judge_files, judge_shifted
    from oodscope.jobs.fit import load_fitted

    scorer = load_fitted(detector, model, separated(weights), device, allow_download=allow_download)
    rows: Iterable[dict[str, Any]] = judge_files(scorer, images, batch_size, progress())
    if fdr is not None:
        decided, said = decide_batch(scorer, list(rows), fdr, fdr_confidence)
        said += judge_shifted(scorer, decided, csid or [], batch_size, progress())
        rows = decided
        for line in said:
            typer.echo(line, err=True)
    failed = (
        as_lines(rows, "json" if as_json else "csv")
        if as_json or as_csv
        else as_table(rows, None if fdr is not None else scorer)
    )
    if failed:
        typer.echo(f"oodscope: {failed} image{'s' * (failed > 1)} could not be read", err=True)
        raise typer.Exit(1)
