"""``oodscope table``: the table people publish, from stored results."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.base.errors import OodscopeError


def table(
    run: Annotated[str, typer.Argument(help="A run's folder or id; the newest of the store unless given.")] = "",
    store: Annotated[str, typer.Option(help="Result store: a file or a database URL.")] = "runs/results.sqlite",
    protocol: Annotated[str, typer.Option(help="Which protocol; the run's first unless given.")] = "",
    metric: Annotated[
        str, typer.Option(help="Such as auroc or fpr95_id_positive; the protocol's first unless given.")
    ] = "",
    format: Annotated[str, typer.Option(help="rich, markdown, csv, latex or json.")] = "rich",
) -> None:
    """Print the table of one run: detectors by sets, with intervals."""
    from oodscope.results import Result, ResultStore, pivot

    if Path(run).is_dir() and run:
        loaded = Result.load(run)
        record, measurements = loaded.record, loaded.measurements
    else:
        records = {record.id: record for record in ResultStore(store).runs()}
        if not records:
            raise OodscopeError(f"{store}: no run yet")
        if run and run not in records:
            raise OodscopeError(f"{store}: no run {run!r}, and no such folder. Runs: {', '.join(records)}")
        record = records[run] if run else list(records.values())[-1]
        measurements = ResultStore(store).measurements(run=record.id)
    chosen = pivot(measurements, protocol or record.protocols[0], metric or None)
    if format == "rich":
        from rich.console import Console

        Console().print(chosen)
    else:
        typer.echo(chosen.render(format))
