"""``oodscope evaluate``: judge detectors for a classifier you have."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.options import declared_benchmark, declared_detectors, declared_model, separated, text_or_none


def evaluate(
    model: options.Model,
    weights: options.Weights = "",
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: options.IdVal = None,
    near: options.Near = None,
    far: options.Far = None,
    csid: options.Csid = None,
    ood_val: options.OodVal = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    detectors: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    protocols: Annotated[str, typer.Option(help="Names separated by commas.")] = "standard",
    tune: Annotated[
        str,
        typer.Option(
            help="Hyper-parameters: 'default', searched on 'ood_val', or 'id_only' (outliers made from id_val)."
        ),
    ] = "default",
    trained_on: options.TrainedOn = "",
    pretrained_on: options.PretrainedOn = "",
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs"),
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    as_seeds: Annotated[
        bool, typer.Option("--as-seeds", help="Several weights files are seeds of one recipe, not an ensemble.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Judge detectors for a classifier on a benchmark."""
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_declared

    history = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    places = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    declared = {
        "benchmark": declared_benchmark(benchmark, places, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "detectors": declared_detectors(detectors),
        "protocols": separated(protocols),
        "tune": tune,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
        "as_seeds": as_seeds,
    }
    finished = execute_declared(declared, "evaluate", progress=ConsoleProgress())

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
