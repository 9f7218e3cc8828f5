"""``oodscope fit``: a detector one can deploy, with its threshold, in one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli.options import separated


def fit(
    model: Annotated[str, typer.Option(help="Network: a name of 'list models', timm:NAME or torchvision:NAME.")],
    weights: Annotated[str, typer.Option(help="A .safetensors file, or 'pretrained'; several files, an ensemble.")],
    output: Annotated[Path, typer.Option(help="The .oodscope file to write.")],
    detector: Annotated[str, typer.Option(help="A name of 'list detectors', or a pair such as react+msp.")] = "knn",
    id_train: Annotated[
        Path | None, typer.Option(help="Folder of training images; its subfolders are classes.")
    ] = None,
    id_cal: Annotated[Path | None, typer.Option(help="Folder of held-out images, for the threshold.")] = None,
    benchmark: Annotated[str, typer.Option(help="Instead of folders: its id_train fits, its id_val calibrates.")] = "",
    transform: Annotated[
        str, typer.Option(help="Preprocessing as in a benchmark's YAML: '{size: 32, mean: [...], std: [...]}'.")
    ] = "",
    target_fpr: Annotated[float, typer.Option(help="Tolerated rate of false alarms on in-distribution images.")] = 0.05,
    guarantee: Annotated[
        str, typer.Option(help="conformal: the rate holds on average; pac: with --confidence.")
    ] = "conformal",
    confidence: Annotated[float, typer.Option(help="Of the pac guarantee.")] = 0.95,
    include_weights: Annotated[
        bool, typer.Option("--include-weights", help="Keep the network's weights in the file: it then stands alone.")
    ] = False,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be decoded.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.", min=1)] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
) -> None:
    """Fit a detector, choose its threshold, and write both to one file.

    The threshold bounds false alarms on in-distribution images like those in --id-cal. It promises nothing about how
    many outliers are caught, nor about images whose conditions have shifted.
    """
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.fit import Deployment

    declared: dict[str, Any] = {
        "model": {"architecture": model, "weights": separated(weights)},
        "detector": detector,
        "id_train": None if id_train is None else str(id_train),
        "id_cal": None if id_cal is None else str(id_cal),
        "benchmark": benchmark or None,
        "transform": transform or None,
        "target_fpr": target_fpr,
        "guarantee": guarantee,
        "confidence": confidence,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
    }
    scorer = Deployment.read(declared).fit(ConsoleProgress())
    scorer.save(output, include_weights=include_weights)
    assert scorer.calibration is not None, "fitting calibrates"
    typer.echo(f"{scorer.detector.id}: reject above {scorer.calibration.threshold:.6g}")
    typer.echo(str(scorer.calibration.guarantee))
    typer.echo(f"saved: {output} ({output.stat().st_size / 2**20:.1f} MiB)")
