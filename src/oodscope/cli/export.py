"""``oodscope export``: classifier, detector and threshold as one ONNX graph."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    images: Annotated[Path | None, typer.Option(help="Folder of real images to check the graph on.")] = None,
    weights: Annotated[str, typer.Option(help="The network's weights, where the file does not hold them.")] = "",
) -> None:
    """Write a graph that takes pixels in [0, 1] and gives logits, score and verdict.

    The graph is run against torch before it is handed over, on noise and on --images; one that differs is refused.
    """
    from oodscope.data.images.folders import open_folder
    from oodscope.deploy.artefact import load
    from oodscope.deploy.onnx import TOLERANCE, export_onnx

    scorer = load(detector, weights=[name.strip() for name in weights.split(",") if name.strip()], device="cpu")
    checked = export_onnx(scorer, onnx, None if images is None else open_folder("images", images))
    for what, off in checked.items():
        typer.echo(f"differs from torch on {what} by {off:.1e} of the largest score (allowed: {TOLERANCE:g})")
    typer.echo(f"saved: {onnx} ({onnx.stat().st_size / 2**20:.1f} MiB)")
