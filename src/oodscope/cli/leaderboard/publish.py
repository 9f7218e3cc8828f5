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
    from oodscope.jobs.job import open_benchmark, read_job
    from oodscope.jobs.model import make_classifier, matched
    from oodscope.leaderboard.verify.publishing import publish_activations

    job, progress = read_job(config), ConsoleProgress()
    benchmark = matched(open_benchmark(job, progress), job.model, job.classes)
    classifier, _ = make_classifier(job.model, benchmark, job.device, progress)
    folder = publish_activations(classifier, benchmark, output, batch_size=job.batch_size, progress=progress)
    size = sum(path.stat().st_size for path in folder.iterdir())
    typer.echo(f"published: {folder} ({size / 2**20:.1f} MiB)")
