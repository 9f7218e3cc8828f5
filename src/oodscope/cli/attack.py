"""``oodscope attack``: search the outliers that fool detectors most."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import AttackPreset, Boundary, Energy, Interpolation, Sources, Tune, complete
from oodscope.cli.command import EXECUTION, execute
from oodscope.cli.options import (
    declared_benchmark,
    declared_detectors,
    declared_model,
    refuse_untrained,
    text_or_none,
)

SEARCH = "Search"
DETECTORS, VARIATIONS = ("msp,ebo,knn,mds,vim",), ("affine,color,affine+color",)


def attack(
    model: options.Model,
    weights: options.Weights = None,
    probe: options.Probe = False,
    head: options.Head = None,
    negatives: options.Negatives = "",
    trained_on: options.TrainedOn = None,
    pretrained_on: options.PretrainedOn = None,
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: Annotated[
        str | None,
        typer.Option(rich_help_panel=options.DATA, help="ID validation set, which standardises the scores."),
    ] = None,
    near: options.Near = None,
    far: options.Far = None,
    transform: options.Transform = None,
    classes: options.Classes = None,
    root: options.Root = None,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    detectors: Annotated[
        list[str] | None,
        typer.Option(
            "--detectors",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("detectors", also=("all",)),
            help=f"As in 'oodscope evaluate'. {options.LIST}",
            show_default=DETECTORS[0],
        ),
    ] = None,
    tune: Annotated[
        Tune,
        typer.Option(
            rich_help_panel=options.DETECTORS, help="Hyper-parameter search first, as in 'oodscope evaluate'."
        ),
    ] = Tune.DEFAULT,
    ood_val: options.OodVal = None,
    on: Annotated[
        str,
        typer.Option(rich_help_panel=SEARCH, help="OOD set to vary; the first far set, else the first near set."),
    ] = "",
    variations: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=SEARCH,
            autocompletion=complete("variations"),
            help="Names of 'oodscope list variations', settings after each: linf,epsilon=0.03; a+b composes; gan=FILE, "
            "gan=python:PKG:FUNCTION are generators, with settings such as dimension=128,truncation=0.7.",
            show_default=VARIATIONS[0],
        ),
    ] = None,
    preset: Annotated[
        AttackPreset,
        typer.Option(
            rich_help_panel=SEARCH,
            help="quick: 200 chains of 200 evaluations; thorough: 5,000 of 2,000; paper: as in the paper.",
        ),
    ] = AttackPreset.THOROUGH,
    budget: Annotated[
        int | None, typer.Option(rich_help_panel=SEARCH, help="Evaluations per chain, in place of the preset's.", min=1)
    ] = None,
    linf_budget: Annotated[
        int | None, typer.Option(rich_help_panel=SEARCH, help="The same in the l-inf ball alone.", min=1)
    ] = None,
    chains: Annotated[
        int | None, typer.Option(rich_help_panel=SEARCH, help="Source images, in place of the preset's.", min=1)
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(rich_help_panel=SEARCH, help="Equal runs of chains that MinRank is averaged over; 5.", min=1),
    ] = None,
    samplers: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=SEARCH,
            autocompletion=complete("samplers"),
            help="Names of 'oodscope list samplers' that share the budget, settings after each: "
            "mh,temperature=0.1,random. A portfolio unless given.",
        ),
    ] = None,
    energy: Annotated[
        Energy | None,
        typer.Option(
            rich_help_panel=SEARCH,
            metavar="NAME",
            help="Scale of the score: canonical (ranks), standardised (paper), released (its code) or rank_probit.",
        ),
    ] = None,
    boundary: Annotated[
        Boundary | None,
        typer.Option(rich_help_panel=SEARCH, help="Steps that leave the box: clamp is the paper's code."),
    ] = None,
    interpolation: Annotated[
        Interpolation | None, typer.Option(rich_help_panel=SEARCH, help="Of affine; nearest is the paper's.")
    ] = None,
    sources: Annotated[
        Sources | None,
        typer.Option(rich_help_panel=SEARCH, help="Images to start from: each class in its share, or the first ones."),
    ] = None,
    search_seeds: Annotated[
        int, typer.Option(rich_help_panel=SEARCH, help="Searches with seeds of their own; numbers are means.", min=1)
    ] = 1,
    white_box: Annotated[
        bool,
        typer.Option(
            "--white-box",
            rich_help_panel=SEARCH,
            help="Check each search by gradients, with the same budget and several starts, on up to 64 chains.",
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(rich_help_panel=SEARCH, help="Independent classifier of the OOD set's classes: is it still one?"),
    ] = None,
    judge_weights: Annotated[
        str | None, typer.Option(rich_help_panel=SEARCH, help="Its weights, a .safetensors file.")
    ] = None,
    export: Annotated[
        bool,
        typer.Option(
            "--export", rich_help_panel=SEARCH, help="Write what each search found as a set to evaluate or train on."
        ),
    ] = False,
    landscape: Annotated[
        bool,
        typer.Option(
            "--landscape",
            rich_help_panel=SEARCH,
            help="Keep a map of one outlier's scores and paths on it, for figure evg-2.",
        ),
    ] = False,
    output: options.Outputs = "runs",
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 256,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of all random numbers.", min=0)] = 0,
) -> None:
    """Search varied outliers that fool each detector most.

    Every (detector, variation) is a search of its own, saved as it goes: interrupted, the same command continues where
    it stopped.
    """
    refuse_untrained(model, weights)
    _check_judge(judge, judge_weights)
    history: dict[str, Any] = {"trained_on": trained_on, "pretrained_on": pretrained_on}
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    declared = {
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far}, transform),
        "root": text_or_none(root),
        "classes": classes,
        "images_per_class": images_per_class,
        "model": declared_model(model, weights, probe=probe, head=head, negatives=negatives, **history),
        "detectors": declared_detectors(detectors or DETECTORS),
        "tune": tune.value,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "seed": seed,
        "output": output,
        "attack": {
            "on": on,
            "variations": list(variations or VARIATIONS),
            "preset": preset.value,
            "budget": budget,
            "linf_budget": linf_budget,
            "chains": chains,
            "runs": runs,
            "samplers": list(samplers or ()),
            "energy": _value(energy),
            "boundary": _value(boundary),
            "interpolation": _value(interpolation),
            "sources": _value(sources),
            "search_seeds": search_seeds,
            "white_box": white_box,
            "judge": None if judge is None else {"architecture": judge, "weights": judge_weights},
            "export": export,
            "landscape": landscape,
        },
    }
    finished = execute(declared, "attack")

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)


def _check_judge(judge: str | None, weights: str | None) -> None:
    from oodscope.base.errors import UsageError

    if judge is None and weights is not None:
        raise UsageError("--judge-weights without --judge: name the architecture of the judge too")
    if judge is not None and weights is None and not judge.startswith("python:"):
        raise UsageError(f"--judge {judge} needs --judge-weights FILE: an untrained judge recognises nothing")


def _value(chosen: StrEnum | None) -> str:
    return "" if chosen is None else chosen.value
