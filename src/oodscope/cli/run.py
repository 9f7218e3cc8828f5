"""``oodscope run``: an evaluation declared in YAML."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    config: Annotated[Path, typer.Argument(help="YAML file that declares benchmark, model and detectors.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the one declared.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run the evaluation that a YAML file declares; with a list of models, a study of them."""
    from oodscope.base.config import read_yaml
    from oodscope.cli.job import read_job
    from oodscope.cli.output import execute_and_show, show_study
    from oodscope.cli.study import execute_study, is_study, read_study
    from oodscope.execution.console import ConsoleProgress

    if is_study(read_yaml(config)):
        jobs = read_study(config)
        show_study(*execute_study(jobs, output or Path(jobs[0].job.output), ConsoleProgress()), as_json)
        return
    job = read_job(config)
    if output is not None:
        job = job.model_copy(update={"output": str(output)})
    execute_and_show(job, ConsoleProgress(), as_json)
