"""``oodscope fit``: a detector one can deploy, with its threshold, in one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.options import PLACE, declared_model, declared_sets, text_or_none


def fit(
    model: options.Model,
    output: Annotated[Path, typer.Option(help="The .oodscope file to write.")],
    weights: options.Weights = "",
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    detector: Annotated[str, typer.Option(help="A name of 'list detectors', or a pair such as react+msp.")] = "knn",
    id_train: Annotated[str | None, typer.Option(help=f"ID training set: {PLACE}, or BENCHMARK:SET.")] = None,
    id_cal: Annotated[str | None, typer.Option(help="Held-out ID set, for the threshold.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Instead of places: its id_train fits, its id_val calibrates.")
    ] = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    target_fpr: Annotated[float, typer.Option(help="Tolerated rate of false alarms on in-distribution images.")] = 0.05,
    guarantee: Annotated[
        str, typer.Option(help="conformal: the rate holds on average; pac: with --confidence.")
    ] = "conformal",
    confidence: Annotated[float, typer.Option(help="Of the pac guarantee.")] = 0.95,
    include_weights: Annotated[
        bool, typer.Option("--include-weights", help="Keep the network's weights in the file: it then stands alone.")
    ] = False,
    trained_on: options.TrainedOn = "",
    pretrained_on: options.PretrainedOn = "",
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
) -> None:
    """Fit a detector, choose its threshold, and write both to one file.

    The threshold bounds false alarms on in-distribution images like those in --id-cal. It promises nothing about how
    many outliers are caught, nor about images whose conditions have shifted.
    """
    from oodscope.base.errors import OodscopeError
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_declared

    if (benchmark is None) == (id_cal is None):
        raise OodscopeError("fit: give --id-cal (and --id-train) or --benchmark, and not both")
    own = declared_sets({"id_train": id_train, "id_cal": id_cal}, {}, transform)
    if benchmark is not None and own:
        option = next(iter(own)).replace("_", "-")
        raise OodscopeError(f"fit: --benchmark brings its own; remove --{option}")
    history = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    declared: dict[str, Any] = {
        "benchmark": benchmark or own,
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "fit": {
            "detector": detector,
            "target_fpr": target_fpr,
            "guarantee": guarantee,
            "confidence": confidence,
            "include_weights": include_weights,
        },
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "output": str(output),
    }
    finished = execute_declared(declared, "fit", progress=ConsoleProgress())

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json=False)
