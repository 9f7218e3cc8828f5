"""``oodscope export``: classifier, detector and threshold as one ONNX graph."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.options import PLACE, AllowDownload, separated


def export(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    images: Annotated[str | None, typer.Option(help=f"Real images to check the graph on: {PLACE}.")] = None,
    model: Annotated[str, typer.Option(help="python:MODULE:FUNCTION, where the network is your own.")] = "",
    weights: Annotated[str, typer.Option(help="The network's weights, where the file does not hold them.")] = "",
    allow_download: AllowDownload = False,
) -> None:
    """Write a graph that takes pixels in [0, 1] and gives logits, score and verdict.

    The graph is run against torch before it is handed over, on noise and on --images; one that differs is refused.
    """
    from oodscope.deploy.onnx import TOLERANCE, export_onnx
    from oodscope.execution.progress import SILENT
    from oodscope.jobs.checking import check_writable
    from oodscope.jobs.fit import load_fitted
    from oodscope.jobs.opening import open_one

    check_writable(onnx.parent)
    scorer = load_fitted(detector, model, separated(weights), "cpu", allow_download=allow_download)
    checked = export_onnx(scorer, onnx, None if images is None else open_one(images, None, SILENT, name="images"))
    for what, off in checked.items():
        typer.echo(f"differs from torch on {what} by {off:.1e} of the largest score (allowed: {TOLERANCE:g})")
    typer.echo(f"saved: {onnx} ({onnx.stat().st_size / 2**20:.1f} MiB)")
