"""``oodscope power``: how many images, classes and networks a difference needs."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options


def power(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    seeds: Annotated[list[Path] | None, typer.Argument(help="Runs of other networks of the same recipe.")] = None,
    points: Annotated[float, typer.Option(help="The difference in AUROC to be seen, in points.")] = 1.0,
    detectors: options.StoredDetectors = None,
) -> None:
    """Say how many images, classes and seeds show a difference.

    Splits the variance of differences between detectors into images, classes and networks.
    """
    from rich.console import Console

    from oodscope.runs.comparison.power import power as power_of
    from oodscope.runs.evaluation.run import Result

    others = [Result.open(each) for each in seeds or ()]
    found = power_of(
        Result.open(run), difference=points / 100.0, detectors=options.separated(detectors) or None, seeds=others
    )
    Console().print(found.table())
