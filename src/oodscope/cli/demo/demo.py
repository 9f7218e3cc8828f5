"""``oodscope demo``: the full pipeline on the embedded benchmark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodscope.cli.command import loading, progress
from oodscope.cli.options import OUTPUT

if TYPE_CHECKING:
    from oodscope.jobs.job import Job

ATTACKED = ["msp", "knn", "vim"]
ATTACK = {"on": "digits", "variations": ["affine", "color"], "budget": 40, "chains": 120, "landscape": True}
"""What two cores search in seconds: enough to see how far each detector falls, not where it ends."""


METHOD, METHOD_EPOCHS = "conf_branch", 2
"""The training method of the second network: it learns its own confidence, which is its score. A quarter of the first
network's epochs show what such a score is; they do not judge the method."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Folder for results and report.")
    ] = Path("runs/demo"),
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class; 500 unless given.", min=1)
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, in place of the demo's own.", min=1)] = None,
    with_attack: Annotated[bool, typer.Option("--attack/--no-attack", help="Attack three detectors too.")] = True,
    with_generated: Annotated[
        bool, typer.Option("--generated/--no-generated", help="Make and check a near-OOD set too.")
    ] = True,
    with_training: Annotated[
        bool, typer.Option("--training/--no-training", help="Train a second network by a method with its own score.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object in place of tables.")
    ] = False,
) -> None:
    """Run the full pipeline on the embedded benchmark.

    Draws a benchmark, trains two small networks, evaluates nine detectors, attacks three, makes and checks a near-OOD
    set, writes one report. Needs no data and no download. Interrupted, it continues where it stopped; a second run uses
    what the first one cached.
    """
    from oodscope.base.errors import DataError

    loading()

    from oodscope.cli.demo.generated import judge_recombined
    from oodscope.cli.output import show
    from oodscope.jobs.attack import AttackJob, execute_attack
    from oodscope.jobs.job import execute, read_job
    from oodscope.jobs.run import find_job
    from oodscope.jobs.task import Task
    from oodscope.report.page.page import write_report
    from oodscope.results.run import Run

    job = read_job(find_job("demo"))
    update: dict[str, object] = {"output": str(output), "images_per_class": images_per_class}
    if epochs is not None and job.model.train is not None:
        stages = tuple(stage.model_copy(update={"epochs": epochs}) for stage in job.model.train)
        update["model"] = job.model.model_copy(update={"train": stages})
    job = job.model_copy(update=update)
    result, folder = execute(job, progress())
    shown, further, links = [(result, folder)], [], {}
    runs: list[Run] = [result]
    if with_training:
        trained, place = execute(_by_method(job), progress())
        shown.append((trained, place))
        further.append("trained")
        runs.append(trained)
    if with_attack:
        shared = {key: getattr(job, key) for key in Task.model_fields}
        few = AttackJob.model_validate({**shared, "detectors": ATTACKED, "attack": ATTACK})
        found, place = execute_attack(few, progress())
        shown.append((found.result, place))
        further.append("attack")
        runs.append(found)
        links["All worst outliers"] = (place.relative_to(output) / "report.html").as_posix()
    if with_generated:
        try:
            study, place = judge_recombined(job, progress())
            runs.append(study)
            links["All of the generated set"] = (place.relative_to(output) / "report.html").as_posix()
        except DataError as error:  # of few images an ensemble learns too little to disagree about others
            typer.echo(f"no generated set: {error}", err=True)
    page = write_report(runs, output / "report.html", links=links)
    show(*shown, as_json=as_json, page=page, further=further)


def _by_method(job: "Job") -> "Job":
    """The same evaluation of a network trained by ``METHOD``, whose own score joins the baseline's."""
    from oodscope.training.registry import create_recipe

    assert job.model.train is not None, "the packaged job trains its network"
    (plain,) = job.model.train
    epochs = min(METHOD_EPOCHS, plain.epochs)
    stage = create_recipe(METHOD, **{**plain.model_dump(mode="json"), "epochs": epochs})
    model = job.model.model_copy(update={"train": (stage,)})
    return job.model_copy(update={"model": model, "detectors": ["msp"]})
