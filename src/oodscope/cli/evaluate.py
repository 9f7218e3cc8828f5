"""``oodscope evaluate``: judge detectors for a classifier you have."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli.options import separated

_PLACE = "a folder, .txt/.csv/.tsv list, .npz, .tar, hf:NAME or torchvision:CLASS"


def evaluate(
    model: Annotated[
        str,
        typer.Option(
            help="Network: a name of 'list models', timm:NAME, torchvision:NAME, hf:NAME, open_clip:NAME/TAG, "
            "dinov2:NAME (with --probe), or python:MODULE:FUNCTION."
        ),
    ],
    weights: Annotated[
        str, typer.Option(help="A .safetensors file, or 'pretrained'; several files, an ensemble.")
    ] = "",
    probe: Annotated[
        bool, typer.Option("--probe", help="Fit a linear head to the features of id_train, instead of the network's.")
    ] = False,
    negatives: Annotated[str, typer.Option(help="Words that name no class, for open_clip: a file, or 'wordnet'.")] = "",
    benchmark: Annotated[
        str | None, typer.Option(help="A name of 'list benchmarks', or a YAML file; or say where your sets lie:")
    ] = None,
    id_test: Annotated[str | None, typer.Option(help=f"Test images of the classes it knows: {_PLACE}.")] = None,
    id_train: Annotated[str | None, typer.Option(help="Its training images.")] = None,
    id_val: Annotated[str | None, typer.Option(help="Held-out images, for thresholds and searches.")] = None,
    near: Annotated[list[str] | None, typer.Option(help="Outliers that look alike; repeat for more sets.")] = None,
    far: Annotated[list[str] | None, typer.Option(help="Other outliers; NAME=PLACE gives a set its name.")] = None,
    csid: Annotated[list[str] | None, typer.Option(help="Its classes under other conditions.")] = None,
    ood_val: Annotated[str | None, typer.Option(help="The only outliers that a search may see.")] = None,
    transform: Annotated[
        str | None,
        typer.Option(help="Preprocessing of your sets: '{size: 224, resize: 256, mean: [...], std: [...]}'."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Text file of the classifier's class names, in the order of its logits.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given.")
    ] = None,
    detectors: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    protocols: Annotated[str, typer.Option(help="Names separated by commas.")] = "standard",
    tune: Annotated[
        str,
        typer.Option(
            help="Hyper-parameters: 'default', searched on 'ood_val', or 'id_only' (outliers made from id_val)."
        ),
    ] = "default",
    trained_on: Annotated[
        str, typer.Option(help="Sets or roles of the benchmark that the weights were trained on; rows say so.")
    ] = "",
    pretrained_on: Annotated[str, typer.Option(help="What the weights saw before that, such as imagenet21k.")] = "",
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs"),
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.", min=1)] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class of a generated benchmark.", min=1)
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be decoded, and count them.")
    ] = False,
    as_seeds: Annotated[
        bool, typer.Option("--as-seeds", help="Several weights files are seeds of one recipe, not an ensemble.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Judge detectors for a classifier on a benchmark."""
    from oodscope.base.config import parse
    from oodscope.cli.output import execute_and_show
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.job import Job

    places = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    groups = {"near": near, "far": far, "csid": csid}
    declared = {
        "benchmark": chosen_benchmark(benchmark, places, groups, transform),
        "root": None if root is None else str(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": {
            "architecture": model,
            "weights": separated(weights) or None,
            "probe": {} if probe else None,
            "text_head": {"negatives": negatives} if negatives else None,
            "trained_on": separated(trained_on),
            "pretrained_on": separated(pretrained_on),
        },
        "detectors": "all" if detectors == "all" else separated(detectors),
        "protocols": separated(protocols),
        "tune": tune,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
        "as_seeds": as_seeds,
    }
    execute_and_show(parse(Job, declared, "evaluate"), ConsoleProgress(), as_json)


def chosen_benchmark(
    benchmark: str | None, places: dict[str, str | None], groups: dict[str, list[str] | None], transform: str | None
) -> Any:
    """The benchmark named, or the sets given one by one."""
    from oodscope.base.config import yaml_text
    from oodscope.base.errors import OodscopeError
    from oodscope.jobs.sets import named_places

    own: dict[str, Any] = {role: place for role, place in places.items() if place is not None}
    own |= {role: named_places(f"--{role}", given) for role, given in groups.items() if given}
    if transform is not None:
        own["transform"] = yaml_text(transform, "--transform")
    if benchmark is not None:
        if own:
            option = next(iter(own)).replace("_", "-")
            raise OodscopeError(f"--benchmark and --{option} do not go together: name a benchmark, or give its sets")
        return benchmark
    if "id_test" not in own:
        raise OodscopeError("say what to judge on: --benchmark NAME, or --id-test PLACE with --near and --far")
    if not groups["near"] and not groups["far"]:
        raise OodscopeError("no outliers to judge on; give some: --near PLACE or --far PLACE")
    return own
