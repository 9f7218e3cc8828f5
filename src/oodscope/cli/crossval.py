"""``oodscope crossval``: cross-validation of detectors."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.options import PLACE, declared_model, separated, text_or_none


def crossval(
    model: options.Model,
    weights: Annotated[str, typer.Option(help="A .safetensors file, or 'pretrained'; none for --backbone full.")] = "",
    backbone: Annotated[
        str,
        typer.Option(
            help="frozen: embed once, train a small head per fold; full: train a network per fold; finetune: adapt one."
        ),
    ] = "frozen",
    benchmark: Annotated[
        list[str] | None, typer.Option(help="A name of 'list benchmarks' (dcv-...), or a YAML file; repeat for more.")
    ] = None,
    id_set: Annotated[str | None, typer.Option("--id", help=f"Images of the known classes: {PLACE}.")] = None,
    ood: Annotated[
        list[str] | None, typer.Option(help="Outliers with classes of their own; repeat; NAME=PLACE gives a name.")
    ] = None,
    level: Annotated[
        str | None, typer.Option(help="Level of the hierarchy that OOD folds keep together, such as superclass.")
    ] = None,
    transform: Annotated[
        str | None, typer.Option(help="Preprocessing, for networks without one: '{size: 32, mean: [...], std: [...]}'.")
    ] = None,
    detectors: Annotated[
        str, typer.Option(help="Names separated by commas, or 'paper': the eight of the paper.")
    ] = "paper",
    folds: Annotated[int, typer.Option(help="K, of both sides.", min=2)] = 5,
    repetitions: Annotated[int, typer.Option(help="Cross-validations, each with folds of its own.", min=0)] = 10,
    truth: Annotated[int, typer.Option(help="Hold-outs whose mean is the reference; 100 in the paper.", min=0)] = 0,
    variance_design: Annotated[
        str, typer.Option(help="'A,B,C': hold-outs that cross A ID draws, B OOD draws and C training seeds.")
    ] = "",
    no_outlier_exposure: Annotated[
        bool, typer.Option("--no-outlier-exposure", help="Judge plainly trained networks only.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="At most so many per training, instead of the default.", min=1)
    ] = None,
    trained_on: Annotated[
        str, typer.Option(help="Sets that the weights were trained on; a folded one is refused.")
    ] = "",
    pretrained_on: Annotated[str, typer.Option(help="What the weights saw before that, such as imagenet1k.")] = "",
    allow_leak: Annotated[
        bool, typer.Option("--allow-leak", help="Go on with a network that has seen folded images; the page says so.")
    ] = False,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    drop_duplicates: Annotated[
        bool, typer.Option("--drop-duplicates", help="Leave out equal images that could be trained on and tested.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop where a group of --level is not tested in every fold.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder of the study; an interrupted one goes on.")] = Path(
        "runs/crossval"
    ),
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of all draws.", min=0)] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Judge detectors by cross-validation: folds of images inside, folds of classes outside."""
    from oodscope.base.config import yaml_text
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_declared
    from oodscope.jobs.sets import named_places

    plan: dict[str, Any] = {
        "folds": folds,
        "repetitions": repetitions,
        "hold_outs": truth,
        "outlier_exposure": not no_outlier_exposure,
        "duplicates": "drop" if drop_duplicates else "error",
        "strict": strict,
        "seed": seed,
    }
    if detectors != "paper":
        plan["detectors"] = separated(detectors)
    if variance_design:
        plan["variance_design"] = separated(variance_design)
    declared: dict[str, Any] = {
        "benchmark": benchmark or [],
        "id_set": id_set,
        "ood": named_places("--ood", ood or []),
        "level": level,
        "root": text_or_none(root),
        "images_per_class": images_per_class,
        "transform": None if transform is None else yaml_text(transform, "--transform"),
        "skip_unreadable": skip_unreadable,
        "model": declared_model(model, weights, trained_on=trained_on, pretrained_on=pretrained_on),
        "backbone": backbone,
        "plan": plan,
        "allow_leak": allow_leak,
        "batch_size": batch_size,
        "device": device,
        "output": str(output),
    }
    if epochs is not None:
        declared |= {
            "head": {"epochs": epochs},
            "train": {"epochs": epochs, "patience": 3},
            "fine_tune": {"epochs": epochs},
        }
    finished = execute_declared(declared, "crossval", progress=ConsoleProgress())

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
