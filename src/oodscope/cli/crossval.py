"""``oodscope crossval``: cross-validation of detectors."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import Backbone, CellTest, CrossvalPreset, complete
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import PLACE, declared_model, places, separated, text_or_none

FOLDS = "Folds"

_data = partial(typer.Option, rich_help_panel=options.DATA)
_model = partial(typer.Option, rich_help_panel=options.MODEL)
_detectors = partial(typer.Option, rich_help_panel=options.DETECTORS)
_folds = partial(typer.Option, rich_help_panel=FOLDS)


def crossval(
    model: options.Model,
    weights: Annotated[
        list[str] | None,
        _model(
            "--weights",
            "-w",
            help="A .safetensors file, or 'pretrained'; none for --backbone full.",
        ),
    ] = None,
    backbone: Annotated[
        Backbone,
        _model(
            help="frozen: embed once, train a head per fold; full: train a network per fold; finetune: adapt one.",
        ),
    ] = Backbone.FROZEN,
    trained_on: Annotated[
        list[str] | None,
        _model(help="Sets that the weights were trained on; a folded one is refused."),
    ] = None,
    pretrained_on: options.PretrainedOn = None,
    allow_leak: Annotated[
        bool,
        _model(
            "--allow-leak",
            help="Allow a network that was trained on folded images; the page says so.",
        ),
    ] = False,
    benchmark: Annotated[
        list[str] | None,
        _data(
            autocompletion=complete("benchmarks"),
            help=f"Names of 'oodscope list benchmarks' (dcv-...), or YAML files. {options.LIST}",
        ),
    ] = None,
    id_set: Annotated[str | None, _data("--id", help=f"Images of the ID classes: {PLACE}.")] = None,
    ood: Annotated[
        list[str] | None,
        _data(help=f"OOD images with their classes, or NAME=PLACE. {options.LIST}"),
    ] = None,
    ood_share: Annotated[
        str | None,
        _data(
            help="Instead of --ood: share of the classes of --id that becomes OOD, drawn from each group of --level.",
        ),
    ] = None,
    levels: Annotated[
        list[str] | None,
        _data(
            help=f"What nested folders are, from the outermost: superclass,class. {options.LIST}",
        ),
    ] = None,
    level: Annotated[
        str | None,
        _data(
            help="Level above the classes whose groups OOD folds keep together, such as superclass: a CSV column, a "
            "level of folders.",
        ),
    ] = None,
    deepest: Annotated[
        str | None,
        _data(help="Level below the classes, at which ID folds are even."),
    ] = None,
    transform: options.Transform = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    drop_duplicates: Annotated[
        bool,
        _data(
            "--drop-duplicates",
            help="Leave out equal images that could be trained on and tested.",
        ),
    ] = False,
    detectors: Annotated[
        list[str] | None,
        _detectors(
            "--detectors",
            "-d",
            autocompletion=complete("detectors", also=("paper",)),
            help=f"As in 'oodscope evaluate'; 'paper' is the eight of the paper. {options.LIST}",
            show_default="paper",
        ),
    ] = None,
    no_outlier_exposure: Annotated[
        bool,
        _detectors("--no-outlier-exposure", help="Evaluate plainly trained networks only."),
    ] = False,
    folds: Annotated[int, _folds(help="K, of ID and of OOD folds.", min=2)] = 5,
    repetitions: Annotated[int, _folds(help="Cross-validations, each with folds of its own.", min=0)] = 10,
    truth: Annotated[
        int | None,
        _folds(
            help="Hold-outs whose mean is the reference; paper: 100.",
            min=0,
            show_default="0, or the preset's",
        ),
    ] = None,
    disjoint_truth: Annotated[
        bool,
        _folds(
            "--disjoint-truth",
            help="Take the reference from a half of the images that no fold uses.",
        ),
    ] = False,
    plain_k_fold: Annotated[bool, _folds("--plain-k-fold", help="Deal ID images regardless of class.")] = False,
    preset: Annotated[
        CrossvalPreset | None,
        _folds(
            help="dcv-paper: eight detectors, distances on features before the ReLU too, 10 x 5 folds, 100 hold-outs.",
        ),
    ] = None,
    test: Annotated[
        CellTest, _folds(help="How detectors are compared over cells; trains nothing.")
    ] = CellTest.WILCOXON,
    auto_parametric: Annotated[
        bool,
        _folds("--auto-parametric", help="Student's t where differences pass for normal."),
    ] = False,
    variance_design: Annotated[
        str,
        _folds(help="'A,B,C': hold-outs that cross A ID draws, B OOD draws and C training seeds."),
    ] = "",
    epochs: Annotated[
        int | None,
        _folds(help="At most so many per training, in place of the default.", min=1),
    ] = None,
    strict: Annotated[
        bool,
        _folds("--strict", help="Stop where a group of --level is not tested in every fold."),
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
        "outlier_exposure": not no_outlier_exposure,
        "duplicates": "drop" if drop_duplicates else "error",
        "stratified": not plain_k_fold,
        "disjoint_truth": disjoint_truth,
        "strict": strict,
        "test": test.value,
        "auto_parametric": auto_parametric,
        "seed": seed,
    }
    if preset is not None:
        plan["preset"] = preset.value
    if truth is not None or preset is None:
        plan["hold_outs"] = truth or 0
    if (names := separated(detectors)) not in ([], ["paper"]):
        plan["detectors"] = names
    if variance_design:
        plan["variance_design"] = separated(variance_design)
    declared: dict[str, Any] = {
        "benchmark": separated(benchmark),
        "id_set": id_set,
        "ood": named_places("--ood", places(ood)),
        "ood_share": ood_share,
        "levels": separated(levels),
        "level": level,
        "deepest": deepest,
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
