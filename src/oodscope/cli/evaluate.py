"""``oodscope evaluate``: evaluate detectors for a classifier, or from arrays or scores computed elsewhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import Intervals, Tune
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import (
    declared_activations,
    declared_benchmark,
    declared_detectors,
    declared_model,
    refuse_untrained,
    separated,
    text_or_none,
)


def evaluate(
    context: typer.Context,
    model: options.OptionalModel = None,
    weights: options.Weights = None,
    as_seeds: Annotated[
        bool,
        typer.Option(
            "--as-seeds",
            rich_help_panel=options.MODEL,
            help="Several weights files are seeds of one recipe, not an ensemble.",
        ),
    ] = False,
    probe: options.Probe = False,
    embedding: options.Embedding = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    trained_on: options.TrainedOn = None,
    pretrained_on: options.PretrainedOn = None,
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
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    activations: options.ArrayFiles = None,
    scores: options.ScoreFile = None,
    model_name: options.ModelName = "",
    detectors: options.Detectors = None,
    skip_inapplicable: options.SkipInapplicable = False,
    protocols: options.Protocols = None,
    tune: Annotated[
        Tune,
        typer.Option(
            rich_help_panel=options.DETECTORS,
            help="Hyper-parameters: defaults, searched on ood_val, or id_only (on outliers made from id_val).",
        ),
    ] = Tune.DEFAULT,
    output: options.Outputs = "runs",
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of the bootstrap.", min=0)] = 0,
    intervals: Annotated[
        Intervals,
        typer.Option(
            rich_help_panel=EXECUTION,
            help="full: analytic, else 1,000 bootstrap replicates; fast: 200 of them; none.",
        ),
    ] = Intervals.FULL,
    workers: options.Workers = "",
    on: options.On = "",
) -> None:
    """Evaluate detectors on a network, on arrays or on scores.

    Needs a network (--model) and data (--benchmark, or --id-test with --near or --far); or arrays computed elsewhere
    (--activations); or scores alone (--scores). Prints tables, saves the run, writes a report.
    """
    from oodscope.base.errors import UsageError

    shared = {
        "detectors": declared_detectors(detectors),
        "protocols": separated(protocols) or ["standard"],
        "tune": tune.value,
        "seed": seed,
        "intervals": intervals.value,
        "output": output,
    }
    if activations or scores is not None:
        _refuse_image_options(context, "--activations" if activations else "--scores")
        arrays = _declared_arrays(activations, scores, model_name, classes, device)
        _show(execute({**shared, **arrays}, "evaluate"), as_json)
        return
    if model is None:
        raise UsageError("no network: pass --model NAME, or --activations ROLE=FILE, or --scores FILE")
    if model_name:
        raise UsageError("--model-name names the network behind --activations or --scores; --model has a name")
    refuse_untrained(model, weights)
    history = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    declared = {
        **shared,
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(
            model, weights, probe=probe, head=head, embedding=embedding, negatives=negatives, **history
        ),
        "skip_unreadable": skip_unreadable,
        "skip_inapplicable": skip_inapplicable,
        "batch_size": batch_size,
        "device": device,
        "as_seeds": as_seeds,
    }
    _show(execute(declared, "evaluate", options.launcher(workers, on)), as_json)


_ALWAYS = ("model_name", "detectors", "protocols", "tune", "seed", "intervals", "output", "as_json")
_FOR_ARRAYS = {"--activations": ("activations", "classes", "device", *_ALWAYS), "--scores": ("scores", *_ALWAYS)}
"""Options that have a meaning where no image is read."""


def _refuse_image_options(context: typer.Context, used: str) -> None:
    """An option that concerns images or their network has no effect on arrays: say so instead of ignoring it."""
    from oodscope.base.errors import UsageError

    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT" and name not in _FOR_ARRAYS[used]:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{used} and {option} do not go together: with {used} no image is read")


def _declared_arrays(
    activations: list[str] | None, scores: Path | None, model_name: str, classes: str | None, device: str
) -> dict[str, Any]:
    named = {"model": model_name} if model_name else {}
    if activations:
        return {"activations": declared_activations(activations), "classes": classes, "device": device, **named}
    return {"scores": str(scores), **named}


def _show(finished: Any, as_json: bool) -> None:
    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
