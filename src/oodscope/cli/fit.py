"""``oodscope fit``: a detector one can deploy, with its threshold, in one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import Guarantee, complete
from oodscope.cli.command import execute
from oodscope.cli.options import PLACE, declared_model, declared_sets, refuse_untrained, text_or_none

THRESHOLD = "Threshold"


def fit(
    model: options.Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", rich_help_panel=options.OUTPUT, help="The .oodscope file to write.")
    ],
    weights: options.Weights = None,
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    trained_on: options.TrainedOn = None,
    pretrained_on: options.PretrainedOn = None,
    id_train: Annotated[
        str | None,
        typer.Option(rich_help_panel=options.DATA, help=f"ID training set: {PLACE}, or BENCHMARK:SET."),
    ] = None,
    id_cal: Annotated[
        str | None, typer.Option(rich_help_panel=options.DATA, help="Held-out ID set, for the threshold.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.DATA,
            autocompletion=complete("benchmarks"),
            help="In place of both: its id_train fits, its id_val calibrates.",
        ),
    ] = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    detector: Annotated[
        str,
        typer.Option(
            "--detector",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("detectors"),
            help="A name of 'oodscope list detectors', or a pair such as react+msp.",
        ),
    ] = "knn",
    target_fpr: Annotated[
        float, typer.Option(rich_help_panel=THRESHOLD, help="Tolerated rate of false alarms on ID images.")
    ] = 0.05,
    guarantee: Annotated[
        Guarantee,
        typer.Option(rich_help_panel=THRESHOLD, help="conformal: the rate holds on average; pac: with --confidence."),
    ] = Guarantee.CONFORMAL,
    confidence: Annotated[float, typer.Option(rich_help_panel=THRESHOLD, help="Of the pac guarantee.")] = 0.95,
    include_weights: Annotated[
        bool,
        typer.Option(
            "--include-weights",
            rich_help_panel=options.OUTPUT,
            help="Keep the network's weights in the file, which then is all that predict needs.",
        ),
    ] = False,
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
) -> None:
    """Fit a detector with a threshold into one file.

    The threshold bounds false alarms on in-distribution images like those in --id-cal. It promises nothing about how
    many outliers are caught, nor about images whose conditions have shifted.
    """
    from oodscope.base.errors import UsageError

    if (benchmark is None) == (id_cal is None):
        raise UsageError("fit: pass --id-cal (and --id-train) or --benchmark, and not both")
    refuse_untrained(model, weights)
    own = declared_sets({"id_train": id_train, "id_cal": id_cal}, {}, transform)
    if benchmark is not None and own:
        option = next(iter(own)).replace("_", "-")
        raise UsageError(f"fit: --benchmark brings its own; remove --{option}")
    history: dict[str, Any] = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    declared: dict[str, Any] = {
        "benchmark": benchmark or own,
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "fit": {
            "detector": detector,
            "target_fpr": target_fpr,
            "guarantee": guarantee.value,
            "confidence": confidence,
            "include_weights": include_weights,
        },
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "output": str(output),
    }
    finished = execute(declared, "fit")

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
