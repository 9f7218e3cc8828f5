"""``oodscope compare``: is the difference more than noise?"""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options


def compare(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    other: Annotated[Path | None, typer.Argument(help="Folder of a second run of the same benchmark.")] = None,
    detectors: options.StoredDetectors = None,
    protocol: options.Protocol = "",
    metric: options.Metric = "",
    as_json: options.AsJson = False,
) -> None:
    """Test detectors or runs against each other.

    All pairs of detectors of one run, or two runs detector by detector, always on the same images.
    """
    from rich.console import Console

    from oodscope.jobs.checking import check_metric

    if metric:
        check_metric(metric)

    from oodscope.runs.comparison.compare import compare as compare_results
    from oodscope.runs.evaluation.run import Result

    found = compare_results(
        Result.load(run),
        Result.load(other) if other is not None else None,
        detectors=options.separated(detectors) or None,
        protocol=protocol or None,
        metric=metric or None,
    )
    if as_json:
        typer.echo(found.to_json())
    else:
        Console().print(found)
