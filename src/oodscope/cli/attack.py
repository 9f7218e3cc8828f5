"""``oodscope attack``: the worst outliers of your detectors."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.options import declared_benchmark, declared_detectors, declared_model, separated, text_or_none


def attack(
    model: options.Model,
    weights: options.Weights = "",
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    detectors: Annotated[
        str, typer.Option(help="Names separated by commas, or 'all' that apply.")
    ] = "msp,ebo,knn,mds,vim",
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: Annotated[str | None, typer.Option(help="ID validation set: it sets the scale of the scores.")] = None,
    near: options.Near = None,
    far: options.Far = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    on: Annotated[
        str, typer.Option(help="The set of outliers to vary; the benchmark's first far set, else near.")
    ] = "",
    variations: Annotated[
        str, typer.Option(help="Names of 'list variations', separated by commas; a+b composes; gan=FILE a generator.")
    ] = "affine,color,affine+color",
    budget: Annotated[
        str,
        typer.Option(help="quick (200 chains of 200 evaluations), paper (5,000 of 2,000), or evaluations per chain."),
    ] = "paper",
    chains: Annotated[int | None, typer.Option(help="Source images to attack, instead of the budget's.", min=1)] = None,
    runs: Annotated[int, typer.Option(help="Equal runs of chains that MinRank is averaged over.", min=1)] = 5,
    sampler: Annotated[
        str, typer.Option(help="How chains move; unless given, mh, and zeroth-order descent for single pixels.")
    ] = "",
    energy: Annotated[str, typer.Option(help="standardised (the paper), or rank_probit.")] = "standardised",
    boundary: Annotated[str, typer.Option(help="Steps that leave the box: reflect, or clamp (the paper's code).")] = "",
    landscape: Annotated[
        bool, typer.Option("--landscape", help="Keep a map of one outlier's scores and paths on it: for figure evg-2.")
    ] = False,
    trained_on: options.TrainedOn = "",
    pretrained_on: options.PretrainedOn = "",
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs"),
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    as_json: options.AsJson = False,
) -> None:
    """Search the outliers that fool each detector most, and measure what is left of it.

    Every (detector, variation) is a search of its own, saved as it goes: interrupted, the same command goes on where it
    stopped.
    """
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_declared

    history = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    places = {"id_test": id_test, "id_train": id_train, "id_val": id_val}
    declared = {
        "benchmark": declared_benchmark(benchmark, places, {"near": near, "far": far}, transform),
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "detectors": declared_detectors(detectors),
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
        "attack": {
            "on": on,
            "variations": separated(variations),
            "budget": budget,
            "chains": chains,
            "runs": runs,
            "sampler": sampler,
            "energy": energy,
            "boundary": boundary,
            "landscape": landscape,
        },
    }
    finished = execute_declared(declared, "attack", progress=ConsoleProgress())

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
