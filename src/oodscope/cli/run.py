"""``oodscope run``: a job declared in YAML."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options


def run(
    config: Annotated[str, typer.Argument(help="YAML file that declares the job, or the name of a packaged one.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the one declared.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run what a YAML file declares: an evaluation; with models, a study of them; with a plan, a cross-validation;
    with attack, an attack; with fit, a detector to deploy."""
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.run import execute_file

    finished = execute_file(config, output=output, progress=ConsoleProgress())

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
