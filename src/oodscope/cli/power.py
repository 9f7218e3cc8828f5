"""``oodscope power``: how many images, classes and networks a difference needs."""

from pathlib import Path
from typing import Annotated

import typer


def power(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    seeds: Annotated[list[Path] | None, typer.Argument(help="Runs of other networks of the same recipe.")] = None,
    points: Annotated[float, typer.Option(help="The difference in AUROC to be seen, in points.")] = 1.0,
    detectors: Annotated[str, typer.Option(help="Names separated by commas; all unless given.")] = "",
) -> None:
    """Show how much of a difference is images, classes and networks, and how many of each would show it."""
    from rich.console import Console

    from oodscope.runs.comparison.power import power as power_of
    from oodscope.runs.evaluation.run import Result

    names = [name.strip() for name in detectors.split(",") if name.strip()]
    others = [Result.load(each) for each in seeds or ()]
    found = power_of(Result.load(run), difference=points / 100.0, detectors=names or None, seeds=others)
    Console().print(found.table())
