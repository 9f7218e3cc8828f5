"""``oodscope attack``: search the outliers that fool detectors most."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import Boundary, Energy, complete
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import (
    declared_benchmark,
    declared_detectors,
    declared_model,
    refuse_untrained,
    separated,
    text_or_none,
)

SEARCH = "Search"
DETECTORS, VARIATIONS = ("msp,ebo,knn,mds,vim",), ("affine,color,affine+color",)


def attack(
    model: options.Model,
    weights: options.Weights = None,
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    trained_on: options.TrainedOn = None,
    pretrained_on: options.PretrainedOn = None,
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: Annotated[
        str | None,
        typer.Option(rich_help_panel=options.DATA, help="ID validation set, which standardises the scores."),
    ] = None,
    near: options.Near = None,
    far: options.Far = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    detectors: Annotated[
        list[str] | None,
        typer.Option(
            "--detectors",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("detectors", also=("all",)),
            help=f"As in 'oodscope evaluate'. {options.LIST}",
            show_default=DETECTORS[0],
        ),
    ] = None,
    on: Annotated[
        str,
        typer.Option(rich_help_panel=SEARCH, help="OOD set to vary; the first far set, else the first near set."),
    ] = "",
    variations: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=SEARCH,
            autocompletion=complete("variations"),
            help=f"Names of 'oodscope list variations'; a+b composes; gan=FILE is a generator. {options.LIST}",
            show_default=VARIATIONS[0],
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            rich_help_panel=SEARCH,
            help="quick (200 chains of 200 evaluations), paper (5,000 of 2,000), or evaluations per chain.",
        ),
    ] = "paper",
    chains: Annotated[
        int | None, typer.Option(rich_help_panel=SEARCH, help="Source images, in place of the budget's.", min=1)
    ] = None,
    runs: Annotated[
        int, typer.Option(rich_help_panel=SEARCH, help="Equal runs of chains that MinRank is averaged over.", min=1)
    ] = 5,
    sampler: Annotated[
        str,
        typer.Option(
            rich_help_panel=SEARCH,
            autocompletion=complete("samplers"),
            help="A name of 'oodscope list samplers'; mh, and zeroth_order for single pixels, unless given.",
        ),
    ] = "",
    energy: Annotated[
        Energy, typer.Option(rich_help_panel=SEARCH, help="Scale of the score: the paper's, or normal ranks.")
    ] = Energy.STANDARDISED,
    boundary: Annotated[
        Boundary | None,
        typer.Option(rich_help_panel=SEARCH, help="Steps that leave the box: clamp is the paper's code."),
    ] = None,
    landscape: Annotated[
        bool,
        typer.Option(
            "--landscape",
            rich_help_panel=SEARCH,
            help="Keep a map of one outlier's scores and paths on it, for figure evg-2.",
        ),
    ] = False,
    output: options.Output = Path("runs"),
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of all random numbers.", min=0)] = 0,
) -> None:
    """Search varied outliers that fool each detector most.

    Every (detector, variation) is a search of its own, saved as it goes: interrupted, the same command continues where
    it stopped.
    """
    refuse_untrained(model, weights)
    history: dict[str, Any] = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val}
    declared = {
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far}, transform),
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "detectors": declared_detectors(detectors or DETECTORS),
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
        "attack": {
            "on": on,
            "variations": separated(variations or VARIATIONS),
            "budget": budget,
            "chains": chains,
            "runs": runs,
            "sampler": sampler,
            "energy": energy.value,
            "boundary": "" if boundary is None else boundary.value,
            "landscape": landscape,
        },
    }
    finished = execute(declared, "attack")

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
