"""``oodscope data audit``: images and classes of a benchmark that are where they should not be."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.data.options import AsJson, Root
from oodscope.cli.options import declared_benchmark, declared_model, text_or_none


def audit(
    benchmark: Annotated[
        str | None, typer.Argument(help="A name of 'list benchmarks', or a YAML file; or say where your sets lie.")
    ] = None,
    root: Root = None,
    id_test: options.IdTest = None,
    id_train: options.IdTrain = None,
    id_val: options.IdVal = None,
    near: options.Near = None,
    far: options.Far = None,
    csid: options.Csid = None,
    ood_val: options.OodVal = None,
    transform: options.Transform = None,
    output: Annotated[Path, typer.Option(help="Folder for the page and the tables of findings.")] = Path("audit"),
    model: Annotated[str, typer.Option(help="Network whose features find more near duplicates; see 'evaluate'.")] = "",
    weights: options.Weights = "",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 256,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    as_json: AsJson = False,
) -> None:
    """Look for pictures that sets share, and for outlier classes that are ID classes.

    Ends with status 1 if something tuned on is judged on.
    """
    from oodscope.base.errors import OodscopeError
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.checking import check_declared

    if weights and not model:
        raise OodscopeError("--weights belongs to a --model")
    places = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    declared: dict[str, Any] = {
        "benchmark": declared_benchmark(benchmark, places, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "images_per_class": images_per_class,
        "model": declared_model(model, weights) if model else None,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "output": str(output),
    }
    check_declared(declared, "data audit")

    from oodscope.jobs.audit import AuditJob, execute_audit

    found, page = execute_audit(AuditJob.read(declared, "data audit"), ConsoleProgress())
    if as_json:
        typer.echo((output / "audit.json").read_text(encoding="utf-8"), nl=False)
    else:
        for line in (*found.summary(), *(f"note: {note}" for note in found.notes)):
            typer.echo(line)
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in found.verdicts().items()))
        typer.echo(f"page: {page}")
    if found.verdicts()["fatal"]:
        raise typer.Exit(1)
