"""``oodscope compare``: is the difference more than noise?"""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    other: Annotated[Path | None, typer.Argument(help="Folder of a second run of the same benchmark.")] = None,
    detectors: Annotated[str, typer.Option(help="Names separated by commas; all unless given.")] = "",
    protocol: Annotated[str, typer.Option(help="Which protocol; the run's first unless given.")] = "",
    metric: Annotated[
        str, typer.Option(help="Which metric, such as auroc or fpr95_id_positive; the protocol's first unless given.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Test detectors against each other on the same images: all pairs of one run, or two runs detector by detector."""
    from rich.console import Console

    from oodscope.jobs.checking import check_metric

    if metric:
        check_metric(metric)

    from oodscope.runs.comparison.compare import compare as compare_results
    from oodscope.runs.evaluation.run import Result

    names = [name.strip() for name in detectors.split(",") if name.strip()]
    found = compare_results(
        Result.load(run),
        Result.load(other) if other is not None else None,
        detectors=names or None,
        protocol=protocol or None,
        metric=metric or None,
    )
    if as_json:
        typer.echo(found.to_json())
    else:
        Console().print(found)
