"""``oodscope export``: classifier, detector and threshold as one ONNX graph."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading
from oodscope.cli.options import PLACE, separated


def export(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    onnx: Annotated[
        Path, typer.Option("--onnx", "--output", "-o", rich_help_panel=options.OUTPUT, help="The .onnx file to write.")
    ],
    images: Annotated[
        str | None, typer.Option(rich_help_panel=options.DATA, help=f"Real images to check the graph on: {PLACE}.")
    ] = None,
    model: options.OwnModel = "",
    weights: options.FileWeights = None,
    allow_download: options.AllowDownload = False,
) -> None:
    """Export a fitted detector as an ONNX graph.

    The graph takes pixels in 0..1 and gives logits, score and verdict. It is run against torch before it is handed
    over, on noise and on --images; one that differs is refused.
    """
    from oodscope.execution.progress import SILENT

    loading()

    from oodscope.deploy.onnx import TOLERANCE, export_onnx, onnx_runtime
    from oodscope.jobs.checking import check_writable_file
    from oodscope.jobs.fit import load_fitted
    from oodscope.jobs.opening import open_one

    onnx_runtime()  # what is missing is said before a network is loaded
    check_writable_file(onnx, "knn.onnx")
    scorer = load_fitted(detector, model, separated(weights), "cpu", allow_download=allow_download)
    checked = export_onnx(scorer, onnx, None if images is None else open_one(images, None, SILENT, name="images"))
    for what, off in checked.items():
        typer.echo(f"differs from torch on {what} by {off:.1e} of the largest score (allowed: {TOLERANCE:g})")
    typer.echo(f"saved: {onnx} ({onnx.stat().st_size / 2**20:.1f} MiB)")
