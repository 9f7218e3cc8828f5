"""``oodscope convert``: an evaluation in the formats in which others collect results."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options


class Target(StrEnum):
    """Formats of others."""

    HUGGINGFACE = "huggingface"
    EVERY_EVAL_EVER = "every-eval-ever"


def convert(
    run: Annotated[Path, typer.Argument(help="Folder of an evaluation.")],
    to: Annotated[Target, typer.Option(help="Format to write.")],
    output: Annotated[Path, typer.Option("--output", "-o", rich_help_panel=options.OUTPUT, help="File to write.")],
    dataset: Annotated[str, typer.Option(help="huggingface: the registered dataset of the hub, OWNER/NAME.")] = "",
    metric: Annotated[str, typer.Option(help="huggingface: the metric.")] = "auroc",
    url: Annotated[str, typer.Option(help="huggingface: where the results can be read.")] = "",
    organization: Annotated[str, typer.Option(help="every-eval-ever: who evaluated.")] = "",
    instances: Annotated[bool, typer.Option(help="every-eval-ever: a line per image beside it.")] = True,
) -> None:
    """Convert a run for other collections of results.

    huggingface: evaluation results as YAML, for .eval_results/ of a model's repository. every-eval-ever: JSON of schema
    0.2.1 with intervals, and instance rows.
    """
    from oodscope.base.errors import UsageError

    if to is Target.HUGGINGFACE and not dataset:
        raise UsageError("convert: --to huggingface needs --dataset OWNER/NAME, a dataset registered as benchmark")
    if to is Target.EVERY_EVAL_EVER and not organization:
        raise UsageError("convert: --to every-eval-ever needs --organization, who evaluated")

    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.interchange.sharing import write_every_eval_ever, write_huggingface

    result, files = Result.open(run), [output]
    if to is Target.HUGGINGFACE:
        write_huggingface(result, output, dataset, metric=metric, url=url)
    else:
        files = write_every_eval_ever(result, output, organization=organization, instances=instances)
    for file in files:
        typer.echo(f"saved: {file}")
