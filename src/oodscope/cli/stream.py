"""``oodscope stream``: detectors on streams of images, in the order in which they come."""

from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import complete
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import (
    declared_activations,
    declared_benchmark,
    declared_model,
    refuse_untrained,
    separated,
    text_or_none,
)

STREAM = "Stream"
DETECTORS = "knn,msp,oodd,mode=causal,oodd,running_prototypes"


def stream(
    model: options.OptionalModel = None,
    weights: options.Weights = None,
    head: options.Head = None,
    negatives: options.Negatives = "",
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: Annotated[
        str | None,
        typer.Option(rich_help_panel=options.DATA, help="ID validation set, on which thresholds are fixed before."),
    ] = None,
    near: options.Near = None,
    far: options.Far = None,
    csid: options.Csid = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    activations: options.ArrayFiles = None,
    model_name: options.ModelName = "",
    detectors: Annotated[
        list[str] | None,
        typer.Option(
            "--detectors",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("stream_detectors"),
            help="Names of 'oodscope list stream_detectors', and other detectors as constant baselines; parameters "
            "follow their name: oodd,mode=causal. Two constant ones and those that read features unless given.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.DETECTORS, help="Constant detector that gains are against; the first unless given."
        ),
    ] = "",
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=STREAM,
            help="Settings of one schedule, repeatable: share=0.1,order=bursts,batch=1. Keys: share, order (mixed, "
            "bursts, id_first, ood_first), images, batch, delay, drift, burst. One of each kind unless given.",
        ),
    ] = None,
    images: Annotated[int, typer.Option(rich_help_panel=STREAM, help="Images of a stream.", min=2)] = 1000,
    batch: Annotated[int, typer.Option(rich_help_panel=STREAM, help="Images that arrive together.", min=1)] = 64,
    draws: Annotated[
        int, typer.Option(rich_help_panel=STREAM, help="Streams drawn for each schedule and OOD set.", min=2)
    ] = 50,
    on: Annotated[
        list[str] | None, typer.Option(rich_help_panel=STREAM, help="OOD sets by name; all near and far sets.")
    ] = None,
    alarm_share: Annotated[
        float, typer.Option(rich_help_panel=STREAM, help="Share of id_val above the fixed threshold.")
    ] = 0.05,
    rolling: Annotated[
        int, typer.Option(rich_help_panel=STREAM, help="Scores before an image that set its rolling threshold.", min=1)
    ] = 200,
    output: options.Outputs = "runs",
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of all draws.", min=0)] = 0,
) -> None:
    """Score streams of images; detectors may learn as they go.

    Every schedule (share and order of OOD images, batch, drift, delay) is drawn many times; all detectors see the same
    streams. Numbers belong to their schedule and are ranked apart from evaluations.
    """
    from oodscope.base.errors import UsageError
    from oodscope.jobs.settings import named_settings

    shared: dict[str, Any] = {
        "detectors": [{name: settings} for name, settings in named_settings(detectors or [DETECTORS])],
        "device": device,
        "seed": seed,
        "output": output,
        "classes": classes,
        "stream": {
            "schedules": [_schedule(text, images, batch) for text in schedule or ()],
            "images": images,
            "batch": batch,
            "draws": draws,
            "on": separated(on),
            "baseline": baseline,
            "alarm_share": alarm_share,
            "rolling": rolling,
        },
    }
    if activations:
        if model is not None or benchmark is not None:
            raise UsageError("--activations and --model do not go together: with --activations no image is read")
        named = {"model": model_name} if model_name else {}
        _show(execute({**shared, **named, "activations": declared_activations(activations)}, "stream"), as_json)
        return
    if model is None:
        raise UsageError("no network: pass --model NAME, or --activations ROLE=FILE")
    refuse_untrained(model, weights)
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val}
    declared = {
        **shared,
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, head=head, negatives=negatives),
        "batch_size": batch_size,
    }
    _show(execute(declared, "stream"), as_json)


def _schedule(text: str, images: int, batch: int) -> dict[str, Any]:
    """The keys of one schedule, from ``KEY=VALUE,...``."""
    from oodscope.jobs.settings import named_settings

    ((_, settings),) = named_settings([f"schedule,{text}"])
    return {"images": images, "batch": batch, **settings}


def _show(finished: Any, as_json: bool) -> None:
    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
