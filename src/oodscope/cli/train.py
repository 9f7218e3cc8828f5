"""``oodscope train``: networks trained by a recipe."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import complete
from oodscope.cli.command import execute
from oodscope.cli.options import separated, text_or_none

RECIPE = "Recipe"


def train(
    benchmark: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.DATA,
            autocompletion=complete("benchmarks"),
            help="A name of 'oodscope list benchmarks', or a YAML file; its id_train is used.",
        ),
    ],
    recipe: Annotated[
        str,
        typer.Option(
            rich_help_panel=RECIPE, autocompletion=complete("recipes"), help="A name of 'oodscope list recipes'."
        ),
    ] = "cross_entropy",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", rich_help_panel=RECIPE, help="A setting of the recipe, KEY=VALUE; repeat the option for more."
        ),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=RECIPE, metavar="NUMBERS", help=f"One network for each. {options.LIST}", show_default="0"
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.MODEL,
            autocompletion=complete("models"),
            help="Network: a name of 'oodscope list models', timm:NAME or torchvision:NAME.",
        ),
    ] = "resnet18_32",
    weights: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.MODEL,
            help="Start from a .safetensors file, or 'pretrained'; by default random weights.",
        ),
    ] = None,
    ood_train: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.DATA,
            help="Outliers to train with, in place of the benchmark's: a place, such as a generated set's folder.",
        ),
    ] = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", rich_help_panel=options.OUTPUT, help="Folder for weights and histories."),
    ] = Path("runs/train"),
    as_json: options.AsJson = False,
    device: options.Device = "auto",
) -> None:
    """Train networks by a recipe, one for each seed.

    Interrupted, it continues where it stopped; a finished training is read back. A chain of recipes is declared in YAML
    and run by 'oodscope run'. One large training is shared by GPUs that torchrun or srun starts ranks for:
    'torchrun --nproc-per-node 8 --max-restarts 3 -m oodscope train ...'.
    """
    from oodscope.base.config import yaml_text
    from oodscope.base.errors import UsageError

    declared: dict[str, Any] = {"recipe": recipe}
    for each in settings or []:
        key, sign, value = each.partition("=")
        if not sign:
            raise UsageError(f"--set {each}: write KEY=VALUE, such as --set epochs=10")
        declared[key.strip()] = yaml_text(value, f"--set {each}")
    finished = execute(
        {
            "train": declared,
            "benchmark": benchmark,
            "ood_train": ood_train,
            "root": text_or_none(root),
            "images_per_class": images_per_class,
            "model": model,
            "weights": weights,
            "seeds": separated(seeds) or ["0"],
            "device": device,
            "output": str(output),
        },
        "train",
    )

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
