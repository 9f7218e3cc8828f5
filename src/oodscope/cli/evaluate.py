"""``oodscope evaluate``: judge detectors for a classifier you have."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[str, typer.Option(help="Network: a name of 'list models', timm:NAME or torchvision:NAME.")],
    weights: Annotated[str, typer.Option(help="A .safetensors file, or 'pretrained'; several files, an ensemble.")],
    benchmark: Annotated[str, typer.Option(help="A name of 'list benchmarks', or a YAML file.")],
    detectors: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    protocols: Annotated[str, typer.Option(help="Names separated by commas.")] = "standard",
    tune: Annotated[
        str,
        typer.Option(
            help="Hyper-parameters: 'default', searched on 'ood_val', or 'id_only' (outliers made from id_val)."
        ),
    ] = "default",
    trained_on: Annotated[
        str, typer.Option(help="Sets or roles of the benchmark that the weights were trained on; rows say so.")
    ] = "",
    pretrained_on: Annotated[str, typer.Option(help="What the weights saw before that, such as imagenet21k.")] = "",
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs"),
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.", min=1)] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class of a generated benchmark.", min=1)
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be decoded, and count them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Judge detectors for a classifier on a benchmark."""
    from oodscope.base.config import parse
    from oodscope.cli.job import Job, execute
    from oodscope.cli.output import show
    from oodscope.execution.console import ConsoleProgress

    declared = {
        "benchmark": benchmark,
        "images_per_class": images_per_class,
        "model": {
            "architecture": model,
            "weights": _names(weights),
            "trained_on": _names(trained_on),
            "pretrained_on": _names(pretrained_on),
        },
        "detectors": "all" if detectors == "all" else _names(detectors),
        "protocols": _names(protocols),
        "tune": tune,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
    }
    show(*execute(parse(Job, declared, "evaluate"), ConsoleProgress()), as_json)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
