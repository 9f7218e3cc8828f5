"""``oodscope demo``: the whole road on the embedded benchmark."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("runs/demo"),
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class; 500 unless given.", min=1)
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, instead of the demo's own.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Draw a benchmark, train a small network, judge every detector, write a report.

    Needs no data and no download. Interrupted, it goes on where it stopped; a second run uses what the
    first one cached.
    """
    from importlib.resources import as_file, files

    from oodscope.cli.job import execute, read_job
    from oodscope.cli.output import show
    from oodscope.execution.console import ConsoleProgress

    with as_file(files("oodscope.cli") / "demo.yaml") as packaged:
        job = read_job(packaged)
    update: dict[str, object] = {"output": str(output), "images_per_class": images_per_class}
    if epochs is not None and job.model.train is not None:
        recipe = job.model.train.model_copy(update={"epochs": epochs})
        update["model"] = job.model.model_copy(update={"train": recipe})
    result, folder = execute(job.model_copy(update=update), ConsoleProgress())
    show(result, folder, as_json)
