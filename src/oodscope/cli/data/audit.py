"""``oodscope data audit``: images and classes of a benchmark that are where they should not be."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.data.options import AsJson, Root


def audit(
    benchmark: Annotated[str, typer.Argument(help="A name of 'list benchmarks', or a YAML file.")],
    root: Root = None,
    output: Annotated[Path, typer.Option(help="Folder for the page and the tables of findings.")] = Path("audit"),
    model: Annotated[str, typer.Option(help="Network whose features find more near duplicates; see 'evaluate'.")] = "",
    weights: Annotated[str, typer.Option(help="Its weights: a .safetensors file, or 'pretrained'.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.", min=1)] = 256,
    images_per_class: Annotated[
        int | None, typer.Option(help="Training images per class of a generated benchmark.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for pictures that sets share, and for outlier classes that are ID classes.

    Ends with status 1 if something tuned on is judged on.
    """

    from oodscope.base.config import parse
    from oodscope.base.errors import OodscopeError
    from oodscope.data.loading import load_benchmark
    from oodscope.execution.console import ConsoleProgress
    from oodscope.jobs.model import ModelSpec, make_classifier
    from oodscope.report.page.audit import write_audit
    from oodscope.runs.audit.audit import audit as look

    if bool(model) != bool(weights):
        raise OodscopeError("--model and --weights belong together")
    progress = ConsoleProgress()
    opened = load_benchmark(benchmark, root=root, images_per_class=images_per_class, progress=progress)
    classifier = None
    if model:
        spec = parse(ModelSpec, {"architecture": model, "weights": weights}, "data audit")
        classifier, _ = make_classifier(spec, opened, device, progress)
    found = look(opened, classifier, batch_size=batch_size, progress=progress)
    page = write_audit(found, opened, output)
    if as_json:
        typer.echo((output / "audit.json").read_text(encoding="utf-8"), nl=False)
    else:
        for line in (*found.summary(), *(f"note: {note}" for note in found.notes)):
            typer.echo(line)
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in found.verdicts().items()))
        typer.echo(f"page: {page}")
    if found.verdicts()["fatal"]:
        raise typer.Exit(1)
