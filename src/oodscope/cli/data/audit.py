"""``oodscope data audit``: images and classes of a benchmark that are where they should not be."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oodscope.cli import options
from oodscope.cli.choices import complete
from oodscope.cli.command import loading, progress
from oodscope.cli.data.options import AsJson
from oodscope.cli.options import OUTPUT, Root, declared_benchmark, declared_model, text_or_none


def audit(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            help="A name of 'oodscope list benchmarks', or a YAML file; or give the sets one by one.",
            autocompletion=complete("benchmarks"),
        ),
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
    output: Annotated[
        Path,
        typer.Option("--output", "-o", rich_help_panel=OUTPUT, help="Folder for the page and the tables of findings."),
    ] = Path("audit"),
    model: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.MODEL,
            help="Network whose features find more near duplicates; as in 'oodscope evaluate'.",
        ),
    ] = "",
    weights: options.Weights = None,
    device: options.Device = "auto",
    batch_size: options.BatchSize = 256,
    images_per_class: options.ImagesPerClass = None,
    skip_unreadable: options.SkipUnreadable = False,
    as_json: AsJson = False,
) -> None:
    """Find images that sets share, and OOD classes that are ID.

    Ends with status 1 if test images were used for tuning.
    """
    from oodscope.base.errors import UsageError
    from oodscope.jobs.checking import check_declared

    if weights and not model:
        raise UsageError("--weights belongs to a --model")
    single = {"id_test": id_test, "id_train": id_train, "id_val": id_val, "ood_val": ood_val}
    declared: dict[str, Any] = {
        "benchmark": declared_benchmark(benchmark, single, {"near": near, "far": far, "csid": csid}, transform),
        "root": text_or_none(root),
        "images_per_class": images_per_class,
        "model": declared_model(model, weights) if model else None,
        "skip_unreadable": skip_unreadable,
        "batch_size": batch_size,
        "device": device,
        "output": str(output),
    }
    check_declared(declared, "data audit")

    loading()

    from oodscope.jobs.audit import AuditJob, execute_audit

    found, page = execute_audit(AuditJob.read(declared, "data audit"), progress())
    if as_json:
        typer.echo((output / "audit.json").read_text(encoding="utf-8"), nl=False)
    else:
        for line in (*found.summary(), *(f"note: {note}" for note in found.notes)):
            typer.echo(line)
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in found.verdicts().items()))
        typer.echo(f"page: {page}")
    if found.verdicts()["fatal"]:
        raise typer.Exit(1)
