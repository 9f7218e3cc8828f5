"""``oodscope generate judge``: what a generated set is worth, by networks that had no part in making it."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.choices import complete
from oodscope.cli.command import EXECUTION, loading, progress
from oodscope.cli.options import MODEL, OUTPUT, declared_benchmark, declared_detectors, text_or_none

DETECTORS = ("msp", "mls", "ebo", "knn", "mds", "vim")


def judge(
    folder: Annotated[Path, typer.Argument(help="Folder of the generated set.")],
    model: Annotated[
        list[str],
        typer.Option("--model", "-m", rich_help_panel=MODEL, help="Network under test: ARCHITECTURE=FILE; repeatable."),
    ],
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge", rich_help_panel=MODEL, help="Network that judges the images, two or more: ARCHITECTURE=FILE."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Folder for the study and its page.")
    ],
    benchmark: options.Benchmark = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: options.IdVal = None,
    near: options.Near = None,
    far: options.Far = None,
    csid: options.Csid = None,
    transform: options.Transform = None,
    root: options.Root = None,
    detectors: Annotated[
        list[str] | None,
        typer.Option(
            "--detectors",
            "-d",
            rich_help_panel=options.DETECTORS,
            autocompletion=complete("detectors"),
            help=f"Names of 'oodscope list detectors'. {options.LIST}",
            show_default=",".join(DETECTORS),
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(rich_help_panel=MODEL, help="Network that judges closeness; efficientnet-lite2 where installed."),
    ] = None,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Seed of all random numbers.", min=0)] = 0,
) -> None:
    """Judge a generated set beside real ones.

    Detectors of every network on the set and on the real sets, what judges see in its images, how close it lies, and
    which claims its numbers allow. Networks that chose the set, kept in its folder, may not judge it; under test they
    are marked.
    """
    loading()

    from oodscope.base.errors import UsageError
    from oodscope.jobs.judge import JudgedSet, default_features
    from oodscope.jobs.task import DataTask, make_detectors
    from oodscope.report.page.generated import write_generated_study
    from oodscope.results.runfile import refuse_overwriting
    from oodscope.runs.generated.claims import claims

    if len(judges) < 2:
        raise UsageError("an ensemble of judges needs two networks or more: give --judge twice")
    refuse_overwriting(output)
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val}
    declared = {
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "output": str(output),
        "device": device,
        "seed": seed,
    }
    shown = progress()
    names = declared_detectors(detectors or DETECTORS)
    make_detectors(names)  # an unknown name is refused before anything is opened
    task = DataTask.read(declared, "generate judge")
    task.check()
    given = JudgedSet(
        folder, task.open_benchmark(shown), model, judges, default_features() if features is None else features
    )
    study = given.study(names, device=device, seed=seed, progress=shown)
    page = write_generated_study(study, output)
    study.save(output)
    typer.echo(study.table().render("markdown"))
    for claim in claims(study):
        typer.echo(f"{claim.answer}: {claim.text} ({claim.evidence})")
    typer.echo(f"saved: {output} ({page})")
