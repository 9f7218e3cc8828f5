"""``oodscope run``: an evaluation declared in YAML."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    config: Annotated[Path, typer.Argument(help="YAML file that declares benchmark, model and detectors.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the one declared.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run the evaluation that a YAML file declares; with a list of models, a study of them; with a plan, a
    cross-validation; with a recipe beside the benchmark, trainings."""
    from oodscope.base.config import read_yaml
    from oodscope.cli.output import execute_and_show, show_crossval, show_study, show_training
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.crossval import execute_crossval, is_crossval, read_crossval_job
    from oodscope.jobs.job import read_job
    from oodscope.jobs.study import execute_study, is_study, read_study
    from oodscope.jobs.train import execute_training, is_training, read_training

    declared = read_yaml(config)
    if is_training(declared):
        training = read_training(config)
        if output is not None:
            training = training.model_copy(update={"output": str(output)})
        show_training(execute_training(training, ConsoleProgress()), as_json)
        return
    if is_crossval(declared):
        plan = read_crossval_job(config)
        if output is not None:
            plan = plan.model_copy(update={"output": str(output)})
        show_crossval(*execute_crossval(plan, ConsoleProgress()), as_json)
        return
    if is_study(declared):
        jobs = read_study(config)
        show_study(*execute_study(jobs, output or Path(jobs[0].job.output), ConsoleProgress()), as_json)
        return
    job = read_job(config)
    if output is not None:
        job = job.model_copy(update={"output": str(output)})
    execute_and_show(job, ConsoleProgress(), as_json)
