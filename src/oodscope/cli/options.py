"""Options that several commands share, and how they become the keys of a job."""

from pathlib import Path
from typing import Annotated, Any

import typer

PLACE = "a folder, .txt/.csv/.tsv list, .npz, .tar, hf:NAME or torchvision:CLASS"

_MODEL = typer.Option(
    help="Network: a name of 'list models', timm:NAME, torchvision:NAME, hf:NAME, open_clip:NAME/TAG, "
    "dinov2:NAME (with --probe or --head), or python:MODULE:FUNCTION."
)
Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
ArrayFiles = Annotated[
    list[str] | None,
    typer.Option(
        help="Instead of a model and images: ROLE=FILE or ROLE:NAME=FILE with logits, features and labels (.npz or "
        ".safetensors), such as near:letters=letters.npz; may be given several times."
    ),
]
ScoreFile = Annotated[
    Path | None,
    typer.Option(
        help="Instead of a model and images: a .csv or .parquet file with set, role and a column per detector."
    ),
]
ModelName = Annotated[str, typer.Option(help="How tables call the network behind --activations or --scores.")]
Weights = Annotated[str, typer.Option(help="A .safetensors file, or 'pretrained'; several files, an ensemble.")]
Probe = Annotated[
    bool, typer.Option("--probe", help="Fit a linear head to the features of id_train, instead of the network's.")
]
Head = Annotated[str | None, typer.Option(help="File with the linear head of a network that ends in features.")]
Negatives = Annotated[str, typer.Option(help="Words that name no class, for open_clip: a file, or 'wordnet'.")]
TrainedOn = Annotated[
    str, typer.Option(help="Sets or roles of the benchmark that the weights were trained on; rows say so.")
]
PretrainedOn = Annotated[str, typer.Option(help="What the weights saw before that, such as imagenet21k.")]
Benchmark = Annotated[
    str | None, typer.Option(help="A name of 'list benchmarks', or a YAML file; or say where your sets lie:")
]
IdTest = Annotated[str | None, typer.Option(help=f"ID test set: {PLACE}.")]
IdTrain = Annotated[str | None, typer.Option(help="ID training set.")]
IdVal = Annotated[str | None, typer.Option(help="ID validation set, for thresholds and searches.")]
Near = Annotated[
    list[str] | None, typer.Option(help="Near-OOD test set (path, hf:NAME, ...); may be given several times.")
]
Far = Annotated[
    list[str] | None, typer.Option(help="Far-OOD test set; NAME=PLACE names it; may be given several times.")
]
Csid = Annotated[list[str] | None, typer.Option(help="Covariate-shifted ID test set (same classes, other conditions).")]
OodVal = Annotated[str | None, typer.Option(help="OOD validation set, used only for hyper-parameter search.")]
Transform = Annotated[
    str | None, typer.Option(help="Preprocessing of your sets: '{size: 224, resize: 256, mean: [...], std: [...]}'.")
]
Classes = Annotated[
    str | None, typer.Option(help="Text file of the classifier's class names, in the order of its logits.")
]
Root = Annotated[
    Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given.")
]
ImagesPerClass = Annotated[int | None, typer.Option(help="Training images per class of a generated benchmark.", min=1)]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be decoded, and count them.")
]
BatchSize = Annotated[int, typer.Option(help="Images per forward pass.", min=1)]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
AllowDownload = Annotated[
    bool, typer.Option("--allow-download", help="Fetch published weights that the file names, if they are not here.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def separated(text: str) -> list[str]:
    """The names that stand between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def declared_model(
    model: str,
    weights: str,
    *,
    probe: bool = False,
    head: str | None = None,
    negatives: str = "",
    trained_on: str = "",
    pretrained_on: str = "",
) -> dict[str, Any]:
    """The keys of a ``ModelSpec``."""
    return {
        "architecture": model,
        "weights": separated(weights) or None,
        "probe": {} if probe else None,
        "head": head,
        "text_head": {"negatives": negatives} if negatives else None,
        "trained_on": separated(trained_on),
        "pretrained_on": separated(pretrained_on),
    }


def declared_detectors(names: str) -> Any:
    """``all``, or the names in a list."""
    return "all" if names == "all" else separated(names)


def declared_sets(
    places: dict[str, str | None], groups: dict[str, list[str] | None], transform: str | None
) -> dict[str, Any]:
    """The sets that are given one by one, by role."""
    from oodscope.base.config import yaml_text
    from oodscope.jobs.sets import named_places

    own: dict[str, Any] = {role: place for role, place in places.items() if place is not None}
    own |= {role: named_places(f"--{role}", given) for role, given in groups.items() if given}
    return own | ({"transform": yaml_text(transform, "--transform")} if transform else {})


def declared_activations(given: list[str]) -> dict[str, Any]:
    """Files by role, from ``ROLE=FILE`` and ``ROLE:NAME=FILE``; a set without a name is called like its file."""
    from oodscope.base.errors import OodscopeError, UnknownNameError

    single, groups = ("id_train", "id_val", "id_test", "ood_val"), ("near", "far", "csid")
    declared: dict[str, Any] = {}
    for text in given:
        place, sign, file = text.partition("=")
        if not sign or not file:
            raise OodscopeError(f"--activations {text}: write ROLE=FILE or ROLE:NAME=FILE, such as near:letters=a.npz")
        role, colon, name = place.partition(":")
        if role not in (*single, *groups):
            raise UnknownNameError("role", role, (*single, *groups), f"Known: {', '.join((*single, *groups))}")
        if role in single and colon:
            raise OodscopeError(f"--activations {text}: {role} is one set and takes no name; write {role}=FILE")
        members = declared if role in single else declared.setdefault(role, {})
        key = role if role in single else name or Path(file).stem
        if key in members:
            raise OodscopeError(f"--activations {text}: {place} is given twice; name each set once")
        members[key] = file
    return declared


def declared_benchmark(
    benchmark: str | None, places: dict[str, str | None], groups: dict[str, list[str] | None], transform: str | None
) -> Any:
    """The benchmark named, or the sets given one by one."""
    from oodscope.base.errors import OodscopeError

    own = declared_sets(places, groups, transform)
    if benchmark is not None:
        if own:
            option = next(iter(own)).replace("_", "-")
            raise OodscopeError(f"--benchmark and --{option} do not go together: name a benchmark, or give its sets")
        return benchmark
    if "id_test" not in own:
        raise OodscopeError("no evaluation data: pass --benchmark NAME, or --id-test PLACE with --near or --far")
    if not groups["near"] and not groups["far"]:
        raise OodscopeError("no OOD data: pass --near PLACE or --far PLACE")
    return own


def text_or_none(value: Path | None) -> str | None:
    """A path as a key of a job."""
    return None if value is None else str(value)
