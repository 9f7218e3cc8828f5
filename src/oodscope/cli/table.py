"""``oodscope table``: the table people publish, from stored results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodscope.base.errors import OodscopeError

if TYPE_CHECKING:
    from oodscope.document.table import Table


def table(
    runs: Annotated[
        list[str] | None, typer.Argument(help="A run's folder or id; the newest of the store unless given.")
    ] = None,
    store: Annotated[
        str, typer.Option(help="Result store: a file or a database URL.", envvar="OODSCOPE_STORE", show_envvar=True)
    ] = "runs/results.sqlite",
    protocol: Annotated[str, typer.Option(help="Which protocol; the run's first unless given.")] = "",
    metric: Annotated[
        str, typer.Option(help="Such as auroc or fpr95_id_positive; the protocol's first unless given.")
    ] = "",
    format: Annotated[
        str, typer.Option(help="rich, markdown, csv, json, latex, html, ...; see oodscope list formats.")
    ] = "rich",
    sheet: Annotated[
        str,
        typer.Option(help="Which table of the run, such as p-values or calibration; its first unless given."),
    ] = "",
    as_seeds: Annotated[
        bool, typer.Option("--as-seeds", help="Several folders are runs of one recipe: show their mean and spread.")
    ] = False,
) -> None:
    """Print the table of one run, or of the seeds of one recipe: detectors by sets, with intervals.

    Every kind of run has tables of its own, in the same formats.
    """
    from oodscope.document.formats import FORMATS
    from oodscope.protocols.arrange import pivot
    from oodscope.results.opening import open_run
    from oodscope.results.store.store import ResultStore
    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.evaluation.seeds import over_seeds

    FORMATS[format]  # a typo is named before any file is read
    if as_seeds:
        print_table(
            over_seeds([Result.load(run) for run in runs or ()]).table(protocol or None, metric or None), format
        )
        return
    if len(runs or ()) > 1:
        raise OodscopeError("a table is of one run; several are seeds (--as-seeds) or rivals (oodscope compare)")
    run = runs[0] if runs else ""
    if Path(run).is_dir() and run:
        if sheet and protocol:
            raise OodscopeError("--sheet and --protocol both name a table of the run; give one of them")
        print_table(open_run(run).table(sheet or protocol or None, metric or None), format)
        return
    if sheet:
        raise OodscopeError("--sheet is for the tables of a study; name its folder")
    records = {record.id: record for record in ResultStore(store).runs()}
    if not records:
        raise OodscopeError(f"{store}: no run yet")
    if run and run not in records:
        raise OodscopeError(f"{store}: no run {run!r}, and no such folder. Runs: {', '.join(records)}")
    record = records[run] if run else list(records.values())[-1]
    measurements = ResultStore(store).measurements(run=record.id)
    print_table(pivot(measurements, protocol or record.protocols[0], metric or None), format)


def print_table(table: "Table", format: str) -> None:
    """Print a table in the terminal's width, or in the format that was asked for."""
    if format == "rich":
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(format).rstrip("\n"))
