"""Options that several commands share, in panels, and how they become the keys of a job."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oodscope.cli.choices import complete
from oodscope.cli.command import EXECUTION

if TYPE_CHECKING:
    from oodscope.execution.launch.launcher import Launcher

DATA, MODEL, DETECTORS, OUTPUT = "Data", "Model", "Detectors", "Output"
"""Panels of the help, beside that of execution."""

PLACE = "folder, .txt/.csv/.tsv list, .npz, .tar, hf:NAME, torchvision:CLASS"
LIST = "Separate several by commas, or repeat the option."

_MODEL = typer.Option(
    rich_help_panel=MODEL,
    autocompletion=complete("models"),
    help="Network: a name of 'oodscope list models', timm:NAME, torchvision:NAME, hf:NAME, open_clip:NAME/TAG, "
    "dinov2:NAME (with --probe or --head), or python:MODULE:FUNCTION. FUNCTION is found from the working folder, "
    "called without arguments, loads its own weights, and returns an nn.Module or an oodscope Classifier.",
)
Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
ArrayFiles = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=DATA,
        help="Instead of a model and images: ROLE=FILE or ROLE:NAME=FILE with logits, features and labels (.npz or "
        f".safetensors), such as near:letters=letters.npz. {LIST}",
    ),
]
ScoreFile = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=DATA,
        help="Instead of a model and images: a .csv or .parquet file with set, role and a column per detector.",
    ),
]
OwnModel = Annotated[
    str,
    typer.Option(rich_help_panel=MODEL, help="python:MODULE:FUNCTION, where the network is your own."),
]
FileWeights = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=MODEL, help="The network's weights, where the file does not hold them."),
]
ModelName = Annotated[
    str, typer.Option(rich_help_panel=MODEL, help="Name of the network behind --activations or --scores, for tables.")
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weights",
        "-w",
        rich_help_panel=MODEL,
        help="A .safetensors or .pt file, or 'pretrained'; several files are an ensemble.",
    ),
]
Probe = Annotated[
    bool,
    typer.Option(
        "--probe",
        rich_help_panel=MODEL,
        help="Fit a linear head to the features of id_train, in place of the network's own head.",
    ),
]
Embedding = Annotated[
    bool,
    typer.Option(
        "--embedding",
        rich_help_panel=MODEL,
        help="The network ends in an embedding and has no classes: detectors that read features only.",
    ),
]
Head = Annotated[
    str | None,
    typer.Option(rich_help_panel=MODEL, help="File with the linear head of a network that ends in features."),
]
Negatives = Annotated[
    str, typer.Option(rich_help_panel=MODEL, help="Words that name no class, for open_clip: a file, or 'wordnet'.")
]
TrainedOn = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=MODEL,
        help="Sets or roles of the benchmark that the weights were trained on; numbers on them are marked.",
    ),
]
PretrainedOn = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=MODEL, help="Earlier training data of the weights, such as imagenet21k."),
]
Benchmark = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA,
        autocompletion=complete("benchmarks"),
        help="A name of 'oodscope list benchmarks', or a YAML file; or give the sets one by one:",
    ),
]
IdTest = Annotated[str | None, typer.Option(rich_help_panel=DATA, help=f"ID test set: {PLACE}.")]
IdTrain = Annotated[str | None, typer.Option(rich_help_panel=DATA, help="ID training set.")]
IdVal = Annotated[
    str | None, typer.Option(rich_help_panel=DATA, help="ID validation set, for thresholds and searches.")
]
Near = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=DATA, help=f"Near-OOD test set (path, hf:NAME, ...), or NAME=PLACE. {LIST}"),
]
Far = Annotated[
    list[str] | None, typer.Option(rich_help_panel=DATA, help="Far-OOD test set, or NAME=PLACE; as --near.")
]
Csid = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=DATA, help="Covariate-shifted ID test set (same classes, other conditions); as --near."
    ),
]
OodVal = Annotated[
    str | None, typer.Option(rich_help_panel=DATA, help="OOD validation set, used only for hyper-parameter search.")
]
StoredDetectors = Annotated[
    list[str] | None,
    typer.Option(
        "--detectors",
        "-d",
        rich_help_panel=DETECTORS,
        autocompletion=complete("detectors"),
        help=f"Detectors of the runs; all unless given. {LIST}",
    ),
]
Transform = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA,
        help="Preprocessing of your sets: '{size: 224, resize: 256, mean: [...], std: [...]}'; "
        "mean and std are 0.5 unless given: pass those of the training; one entry reads images as grey.",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(rich_help_panel=DATA, help="Text file of the classifier's class names, in the order of its logits."),
]
Root = Annotated[
    Path | None,
    typer.Option(rich_help_panel=DATA, help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given."),
]
ImagesPerClass = Annotated[
    int | None, typer.Option(rich_help_panel=DATA, help="Training images per class of a generated benchmark.", min=1)
]
SkipUnreadable = Annotated[
    bool,
    typer.Option(
        "--skip-unreadable", rich_help_panel=DATA, help="Leave out images that cannot be decoded, and count them."
    ),
]
Detectors = Annotated[
    list[str] | None,
    typer.Option(
        "--detectors",
        "-d",
        rich_help_panel=DETECTORS,
        autocompletion=complete("detectors", also=("all",)),
        help="Names of 'oodscope list detectors', pairs such as react+msp, python:MODULE:CLASS for one of your own "
        f"(found from the working folder, made without arguments), or 'all' that apply. {LIST}",
        show_default="all",
    ),
]
SkipInapplicable = Annotated[
    bool,
    typer.Option(
        "--skip-inapplicable",
        rich_help_panel=DETECTORS,
        help="Leave out named detectors that do not apply, and record why.",
    ),
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=DETECTORS,
        autocompletion=complete("protocols"),
        help=f"Names of 'oodscope list protocols'. {LIST}",
        show_default="standard",
    ),
]
BatchSize = Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Images per forward pass.", min=1)]
Device = Annotated[
    str,
    typer.Option(
        rich_help_panel=EXECUTION,
        autocompletion=complete(also=("auto", "cpu", "cuda", "mps")),
        help="auto, cpu, cuda, cuda:1 or mps.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object in place of tables.")
]
Workers = Annotated[
    str,
    typer.Option(
        rich_help_panel=EXECUTION,
        metavar="NUMBER",
        help="Processes that share the work; 'auto' is one for each GPU, or for each core. By default this one alone.",
    ),
]
On = Annotated[
    str,
    typer.Option(
        rich_help_panel=EXECUTION,
        autocompletion=complete(also=("local", "ray", "slurm")),
        help="Where workers run: local, ray (a cluster, or one started here) or slurm (an array; see --slurm).",
    ),
]
Slurm = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=EXECUTION,
        metavar="KEY=VALUE",
        help=f"Options of sbatch for --on slurm, such as partition=gpu,time=2:00:00,gres=gpu:1. {LIST}",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Folder for results and report.")]
Outputs = Annotated[
    str,
    typer.Option(
        "--output", "-o", rich_help_panel=OUTPUT, help="Folder for results and report, or its URL (s3://...)."
    ),
]
Store = Annotated[
    str,
    typer.Option(
        rich_help_panel=DATA,
        envvar="OODSCOPE_STORE",
        show_envvar=True,
        help="Result store: a file or a database URL.",
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        rich_help_panel=OUTPUT,
        autocompletion=complete("metrics"),
        help="A name of 'oodscope list metrics'; the protocol's headline unless given.",
    ),
]
Mixture = Annotated[
    list[str] | None,
    typer.Option(
        "--weights",
        rich_help_panel=DATA,
        help="What matters to you, such as near=0.8,far=0.2, by groups or sets: which detector to take for that. "
        f"{LIST}",
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        rich_help_panel=OUTPUT,
        autocompletion=complete("protocols"),
        help="Which protocol; the run's first unless given.",
    ),
]
AllowDownload = Annotated[
    bool,
    typer.Option(
        "--allow-download",
        rich_help_panel=MODEL,
        help="Download published weights that the file names, if they are not here.",
    ),
]


def separated(given: str | Sequence[str] | None) -> list[str]:
    """The values of a list option: what stands between commas, in one text or in several."""
    texts = [given] if isinstance(given, str) else given or ()
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def launcher(workers: str, on: str, slurm: Sequence[str] | None = None) -> "Launcher | None":
    """Who does the work; ``None`` is this process."""
    from oodscope.base.errors import UnknownNameError, UsageError

    known = ("local", "ray", "slurm")
    if on and on not in known:
        raise UnknownNameError("place for workers", on, known, f"Choose from: {', '.join(known)}")
    if workers not in ("", "auto") and not (workers.isascii() and workers.isdigit() and 0 < int(workers) <= 10_000):
        raise UsageError(f"--workers {workers}: a number from 1 to 10,000, or auto")
    if slurm and on != "slurm":
        raise UsageError("--slurm goes with --on slurm")
    if not workers and not on:
        return None
    count = None if workers in ("", "auto") else int(workers)
    if on == "ray":
        from oodscope.execution.launch.ray import RayLauncher

        return RayLauncher(count)
    if on == "slurm":
        from oodscope.execution.launch.slurm import SlurmLauncher, sbatch_options

        return SlurmLauncher(count, sbatch_options(separated(slurm)))
    from oodscope.execution.launch.local import LocalLauncher

    return LocalLauncher(count)


def places(given: Sequence[str] | None) -> list[str]:
    """The values of an option of places: separated by commas, unless a comma belongs to a path that exists."""
    found: list[str] = []
    for text in given or ():
        whole = Path(text.partition("=")[2] or text).exists()
        found += [text] if whole else separated(text)
    return found


def declared_model(
    model: str,
    weights: Sequence[str] | None,
    *,
    probe: bool = False,
    head: str | None = None,
    embedding: bool = False,
    negatives: str = "",
    trained_on: Sequence[str] | None = None,
    pretrained_on: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The keys of a ``ModelSpec``."""
    return {
        "architecture": model,
        "weights": separated(weights) or None,
        "probe": {} if probe else None,
        "head": head,
        "embedding": embedding,
        "text_head": {"negatives": negatives} if negatives else None,
        "trained_on": separated(trained_on),
        "pretrained_on": separated(pretrained_on),
    }


def refuse_untrained(model: str, weights: Sequence[str] | None) -> None:
    """Refuse a network of a library without weights: an untrained one has nothing to detect with."""
    from oodscope.base.catalog import catalog
    from oodscope.base.errors import UsageError

    library, colon, _ = model.partition(":")
    if not weights and (model in catalog("models") or (colon and library != "python")):
        known = "--weights FILE, or --weights pretrained" if colon else "--weights FILE, or train one (oodscope train)"
        raise UsageError(f"--model {model} needs weights: pass {known}")


def declared_detectors(given: Sequence[str] | None) -> Any:
    """``all``, also beside other names, or the names in a list."""
    names = separated(given)
    return "all" if not names or "all" in names else names


def declared_sets(
    single: dict[str, str | None], groups: dict[str, list[str] | None], transform: str | None
) -> dict[str, Any]:
    """The sets that are given one by one, by role."""
    from oodscope.base.config import yaml_text
    from oodscope.jobs.sets import named_places

    own: dict[str, Any] = {role: place for role, place in single.items() if place is not None}
    own |= {role: named_places(f"--{role}", places(given)) for role, given in groups.items() if given}
    return own | ({"transform": yaml_text(transform, "--transform")} if transform else {})


def declared_activations(given: Sequence[str]) -> dict[str, Any]:
    """Files by role, from ``ROLE=FILE`` and ``ROLE:NAME=FILE``; a set without a name is called like its file."""
    from oodscope.base.errors import UnknownNameError, UsageError

    single, groups = ("id_train", "id_val", "id_test", "ood_val"), ("near", "far", "csid")
    declared: dict[str, Any] = {}
    for text in places(given):
        place, sign, file = text.partition("=")
        if not sign or not file:
            raise UsageError(f"--activations {text}: write ROLE=FILE or ROLE:NAME=FILE, such as near:letters=a.npz")
        role, colon, name = place.partition(":")
        if role not in (*single, *groups):
            raise UnknownNameError("role", role, (*single, *groups), f"Choose from: {', '.join((*single, *groups))}")
        if role in single and colon:
            raise UsageError(f"--activations {text}: {role} is one set and takes no name; write {role}=FILE")
        members = declared if role in single else declared.setdefault(role, {})
        key = role if role in single else name or Path(file).stem
        if key in members:
            raise UsageError(f"--activations {text}: {place} is given twice; name each set once")
        members[key] = file
    return declared


def declared_benchmark(
    benchmark: str | None, single: dict[str, str | None], groups: dict[str, list[str] | None], transform: str | None
) -> Any:
    """The benchmark named, or the sets given one by one."""
    from oodscope.base.errors import UsageError

    own = declared_sets(single, groups, transform)
    if benchmark is not None:
        if own:
            option = next(iter(own)).replace("_", "-")
            raise UsageError(f"--benchmark and --{option} do not go together: name a benchmark, or give its sets")
        return benchmark
    if "id_test" not in own:
        raise UsageError("no evaluation data: pass --benchmark NAME, or --id-test PLACE with --near or --far")
    if not groups["near"] and not groups["far"]:
        raise UsageError("no OOD data: pass --near PLACE or --far PLACE")
    return own


def text_or_none(value: Path | None) -> str | None:
    """A path as a key of a job."""
    return None if value is None else str(value)
