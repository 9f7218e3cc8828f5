"""``oodscope leaderboard publish``: activations that anybody can run a detector on."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.command import loading, progress
from oodscope.cli.options import OUTPUT


def publish(
    config: Annotated[Path, typer.Argument(help="YAML of 'oodscope run': its benchmark and its model are used.")],
    output: Annotated[Path, typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Folder for the activations.")],
) -> None:
    """Publish a network's logits and features, with checksums.

    On every set of a benchmark, with labels. Detectors of entries are run again on them ('leaderboard rerun').
    """
    loading()

    from oodscope.jobs.job import read_job
    from oodscope.leaderboard.verify.publishing import publish_activations

    job, sink = read_job(config).model_copy(update={"output": str(output)}), progress()
    job.check()
    benchmark = job.open_benchmark(sink)
    classifier = job.build(benchmark, sink).classifier
    folder = publish_activations(classifier, benchmark, output, batch_size=job.batch_size, progress=sink)
    size = sum(path.stat().st_size for path in folder.iterdir())
    typer.echo(f"published: {folder} ({size / 2**20:.1f} MiB)")
