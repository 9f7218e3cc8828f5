"""``oodscope run``: a job declared in YAML."""

from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading, progress


def run(
    config: Annotated[
        str,
        typer.Argument(help="YAML file that declares the job, the name of a packaged one, or the folder of a plan."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            rich_help_panel=options.OUTPUT,
            help="Folder for results, or its URL (s3://...), in place of the one declared.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    workers: options.Workers = "",
    on: options.On = "",
    slurm: options.Slurm = None,
) -> None:
    """Run a job that a YAML file declares.

    An evaluation; with models, a study of them; with encoders, a scorecard of them; with plan, a cross-validation; with
    attack, an attack; with fit, a detector to deploy; with train, a training; with activations or scores, an evaluation
    of arrays.
    """
    from oodscope.jobs.run import execute_file

    launcher = options.launcher(workers, on, slurm)
    finished = execute_file(config, output=output, launcher=launcher, progress=progress(), ready=loading)

    from oodscope.cli.output import show_finished

    show_finished(finished, as_json)
