"""``oodscope crossval``: cross-validation of detectors."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import Backbone, complete
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import PLACE, declared_model, places, separated, text_or_none

FOLDS = "Folds"


def crossval(
    model: options.Model,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weights",
            "-w",
            rich_help_panel=options.MODEL,
            help="A .safetensors file, or 'pretrained'; none for --backbone full.",
        ),
    ] = None,
    backbone: Annotated[
        Backbone,
        typer.Option(
            rich_help_panel=options.MODEL,
            help="frozen: embed once, train a head per fold; full: train a network per fold; finetune: adapt one.",
        ),
    ] = Backbone.FROZEN,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.MODEL, help="Sets that the weights were trained on; a folded one is refused."
        ),
    ] = None,
    pretrained_on: options.PretrainedOn = None,
    allow_leak: Annotated[
        bool,
        typer.Option(
            "--allow-leak",
            rich_help_panel=options.MODEL,
            help="Allow a network that was trained on folded images; the page says so.",
        ),
    ] = False,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.DATA,
            autocompletion=complete("benchmarks"),
            help=f"Names of 'oodscope list benchmarks' (dcv-...), or YAML files. {options.LIST}",
        ),
    ] = None,
    id_set: Annotated[
        str | None, typer.Option("--id", rich_help_panel=options.DATA, help=f"Images of the ID classes: {PLACE}.")
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.DATA, help=f"OOD images with their classes, or NAME=PLACE. {options.LIST}"
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.DATA,
            help="Level of the hierarchy that OOD folds keep together, such as superclass.",
        ),
    ] = None,
    transform: options.Transform = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    drop_duplicates: Annotated[
        bool,
        typer.Option(
            "--drop-duplicates",
            rich_help_panel=options.DATA,
            help="Leave out equal images that could be trained on and tested.",
        ),
    ] = False,
    detectors: Annotated[
        list[str] | None,
        typer.Option(
            "--detectors",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("detectors", also=("paper",)),
            help=f"As in 'oodscope evaluate'; 'paper' is the eight of the paper. {options.LIST}",
            show_default="paper",
        ),
    ] = None,
    no_outlier_exposure: Annotated[
        bool,
        typer.Option(
            "--no-outlier-exposure", rich_help_panel=options.DETECTORS, help="Evaluate plainly trained networks only."
        ),
    ] = False,
    folds: Annotated[int, typer.Option(rich_help_panel=FOLDS, help="K, of ID and of OOD folds.", min=2)] = 5,
    repetitions: Annotated[
        int, typer.Option(rich_help_panel=FOLDS, help="Cross-validations, each with folds of its own.", min=0)
    ] = 10,
    truth: Annotated[
        int, typer.Option(rich_help_panel=FOLDS, help="Hold-outs whose mean is the reference; paper: 100.", min=0)
    ] = 0,
    variance_design: Annotated[
        str,
        typer.Option(
            rich_help_panel=FOLDS, help="'A,B,C': hold-outs that cross A ID draws, B OOD draws and C training seeds."
        ),
    ] = "",
    epochs: Annotated[
        int | None,
        typer.Option(rich_help_panel=FOLDS, help="At most so many per training, in place of the default.", min=1),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", rich_help_panel=FOLDS, help="Stop where a group of --level is not tested in every fold."
        ),
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", rich_help_panel=options.OUTPUT, help="Folder of the study; an interrupted one continues."
        ),
    ] = Path("runs/crossval"),
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of all draws.", min=0)] = 0,
) -> None:
    """Cross-validate detectors over images and OOD classes.

    Dual cross-validation: ID folds divide images, OOD folds divide whole classes.
    """
    from oodscope.base.config import yaml_text
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
    if (names := separated(detectors)) not in ([], ["paper"]):
        plan["detectors"] = names
    if variance_design:
        plan["variance_design"] = separated(variance_design)
    declared: dict[str, Any] = {
        "benchmark": separated(benchmark),
        "id_set": id_set,
        "ood": named_places("--ood", places(ood)),
        "level": level,
        "root": text_or_none(root),
        "images_per_class": images_per_class,
        "transform": None if transform is None else yaml_text(transform, "--transform"),
        "skip_unreadable": skip_unreadable,
        "model": declared_model(model, weights, trained_on=trained_on, pretrained_on=pretrained_on),
        "backbone": backbone.value,
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
    finished = execute(declared, "crossval")

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
