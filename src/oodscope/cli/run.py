"""``oodscope run``: an evaluation declared in YAML."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    config: Annotated[Path, typer.Argument(help="YAML file that declares benchmark, model and detectors.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the one declared.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run the evaluation that a YAML file declares."""
    from oodscope.cli.job import read_job
    from oodscope.cli.output import execute_and_show
    from oodscope.execution.console import ConsoleProgress

    job = read_job(config)
    if output is not None:
        job = job.model_copy(update={"output": str(output)})
    execute_and_show(job, ConsoleProgress(), as_json)
