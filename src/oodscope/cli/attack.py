"""``oodscope attack``: the worst outliers of your detectors."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.evaluate import chosen_benchmark
from oodscope.cli.options import separated


def attack(
    model: Annotated[
        str, typer.Option(help="Network: a name of 'list models', timm:NAME, torchvision:NAME, ..., as for evaluate.")
    ],
    weights: Annotated[
        str, typer.Option(help="A .safetensors file, or 'pretrained'; several files, an ensemble.")
    ] = "",
    detectors: Annotated[
        str, typer.Option(help="Names separated by commas, or 'all' that apply.")
    ] = "msp,ebo,knn,mds,vim",
    benchmark: Annotated[
        str | None, typer.Option(help="A name of 'list benchmarks', or a YAML file; or say where your sets lie:")
    ] = None,
    id_test: Annotated[str | None, typer.Option(help="Test images of the classes it knows.")] = None,
    id_train: Annotated[str | None, typer.Option(help="Its training images.")] = None,
    id_val: Annotated[str | None, typer.Option(help="Held-out images: they set the scale of the scores.")] = None,
    far: Annotated[list[str] | None, typer.Option(help="Outliers to start from; NAME=PLACE names a set.")] = None,
    transform: Annotated[
        str | None, typer.Option(help="Preprocessing of your sets: '{size: 32, mean: [...], std: [...]}'.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given.")
    ] = None,
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
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs"),
    batch_size: Annotated[int, typer.Option(help="Images per forward pass of the fit.", min=1)] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Search the outliers that fool each detector most, and measure what is left of it.

    Every (detector, variation) is a search of its own, saved as it goes: interrupted, the same command goes on where it
    stopped.
    """
    from oodscope.base.config import parse
    from oodscope.cli.output import show
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.attack import AttackSettings, execute_attack
    from oodscope.jobs.job import Job

    places = {"id_test": id_test, "id_train": id_train, "id_val": id_val}
    declared = {
        "benchmark": chosen_benchmark(benchmark, places, {"near": None, "far": far}, transform),
        "root": None if root is None else str(root),
        "model": {"architecture": model, "weights": separated(weights) or None},
        "detectors": "all" if detectors == "all" else separated(detectors),
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": str(output),
    }
    settings = {
        "on": on,
        "variations": separated(variations),
        "budget": budget,
        "chains": chains,
        "runs": runs,
        "sampler": sampler,
        "energy": energy,
        "boundary": boundary,
        "landscape": landscape,
    }
    found, folder = execute_attack(
        parse(Job, declared, "attack"), parse(AttackSettings, settings, "attack"), ConsoleProgress()
    )
    show((found.result, folder), as_json=as_json)
