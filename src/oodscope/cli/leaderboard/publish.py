"""``oodscope leaderboard publish``: activations that anybody can run a detector on."""

from pathlib import Path
from typing import Annotated

import typer


def publish(
    config: Annotated[Path, typer.Argument(help="YAML of 'oodscope run': its benchmark and its model are used.")],
    output: Annotated[Path, typer.Option(help="Folder for the activations.")],
) -> None:
    """Write a network's logits, features and labels on every set of a benchmark, with checksums.

    Detectors of entries are run again on them ('leaderboard rerun').
    """
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.job import read_job
    from oodscope.leaderboard.verify.publishing import publish_activations

    job, progress = read_job(config).model_copy(update={"output": str(output)}), ConsoleProgress()
    job.check()
    benchmark = job.open_benchmark(progress)
    classifier = job.build(benchmark, progress).classifier
    folder = publish_activations(classifier, benchmark, output, batch_size=job.batch_size, progress=progress)
    size = sum(path.stat().st_size for path in folder.iterdir())
    typer.echo(f"published: {folder} ({size / 2**20:.1f} MiB)")
