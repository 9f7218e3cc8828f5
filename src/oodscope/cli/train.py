"""``oodscope train``: networks trained by a recipe."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli.options import separated


def train(
    benchmark: Annotated[str, typer.Option(help="A name of 'list benchmarks', or a YAML file; its id_train is used.")],
    recipe: Annotated[str, typer.Option(help="A name of 'list recipes'.")] = "cross_entropy",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the recipe, KEY=VALUE; may be given several times.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Network: a name of 'list models', timm:NAME or torchvision:NAME.")
    ] = "resnet18_32",
    weights: Annotated[
        str | None, typer.Option(help="Start from a .safetensors file, or 'pretrained'; by default random weights.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="One network for each, separated by commas.")] = "0",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for weights and histories.")] = Path(
        "runs/train"
    ),
    root: Annotated[
        Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given.")
    ] = None,
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class of a generated benchmark.", min=1)
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Train networks by a recipe, one for each seed.

    Interrupted, it goes on where it stopped; a finished training is read back. A chain of recipes is declared in YAML
    and run by 'oodscope run'.
    """
    from oodscope.base.config import yaml_text
    from oodscope.base.errors import OodscopeError
    from oodscope.cli.output import show_finished
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_declared

    declared: dict[str, Any] = {"recipe": recipe}
    for each in settings or []:
        key, sign, value = each.partition("=")
        if not sign:
            raise OodscopeError(f"--set {each}: write KEY=VALUE, such as --set epochs=10")
        declared[key.strip()] = yaml_text(value, f"--set {each}")
    finished = execute_declared(
        {
            "train": declared,
            "benchmark": benchmark,
            "root": None if root is None else str(root),
            "images_per_class": images_per_class,
            "model": model,
            "weights": weights,
            "seeds": separated(seeds),
            "device": device,
            "output": str(output),
        },
        "train",
        progress=ConsoleProgress(),
    )
    show_finished(finished, as_json)
