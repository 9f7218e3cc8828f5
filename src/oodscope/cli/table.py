"""``oodscope table``: the table people publish, from stored results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodscope.base.errors import OodscopeError, UsageError
from oodscope.cli import options
from oodscope.cli.choices import complete

if TYPE_CHECKING:
    from oodscope.document.table import Table


def table(
    runs: Annotated[
        list[str] | None, typer.Argument(help="A run's folder or id; the newest of the store unless given.")
    ] = None,
    store: options.Store = "runs/results.sqlite",
    protocol: options.Protocol = "",
    metric: options.Metric = "",
    sheet: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.OUTPUT,
            help="Which table of the run, such as p-values or calibration; its first unless given.",
        ),
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            rich_help_panel=options.OUTPUT,
            autocompletion=complete("formats"),
            help="A name of 'oodscope list formats': rich, markdown, csv, json, latex, html, ...",
        ),
    ] = "rich",
    weights: options.Mixture = None,
    as_seeds: Annotated[
        bool,
        typer.Option(
            "--as-seeds",
            rich_help_panel=options.DATA,
            help="Several folders are runs of one recipe: show their mean and spread.",
        ),
    ] = False,
) -> None:
    """Print the table of a run, or the mean over seeds.

    Detectors by sets, with intervals. Every kind of run has tables of its own, in the same formats.
    """
    from oodscope.document.formats import FORMATS
    from oodscope.metrics.catalog import METRICS

    FORMATS[format]  # a typo is named before any file is read
    if metric:
        METRICS[metric]
    if sheet and protocol:
        raise UsageError("--sheet and --protocol both name a table of the run; give one of them")
    if len(runs or ()) > 1 and not as_seeds:
        raise UsageError("a table is of one run; several are seeds (--as-seeds) or rivals (oodscope compare)")

    from oodscope.results.opening import open_run
    from oodscope.runs.comparison.recommendation import read_weights
    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.evaluation.seeds import over_seeds

    if as_seeds:
        seeds = over_seeds([Result.open(run) for run in runs or ()])
        print_table(seeds.table(protocol or None, metric or None), format)
        return
    run = runs[0] if runs else ""
    mixture = read_weights(options.separated(weights))
    if mixture and not (run and Path(run).is_dir()):
        raise UsageError("--weights needs the scores of a run: name its folder")
    if run and Path(run).is_dir():
        print_table(open_run(run).table(sheet or protocol or None, metric or None), format)
        if mixture:
            from oodscope.runs.comparison.recommendation import recommended

            typer.echo("\n".join(recommended(Result.open(run), mixture)), err=format != "rich")
        return
    if sheet:
        raise UsageError("--sheet is for the tables of a study; name its folder")
    print_table(_stored(run, store, protocol, metric), format)


def _stored(run: str, store: str, protocol: str, metric: str) -> "Table":
    from oodscope.protocols.arrange import pivot
    from oodscope.results.store.store import ResultStore

    if "://" not in store and not Path(store).exists():
        wanted = f"{run}: no such run folder, and" if run else "no run named, and"
        raise OodscopeError(f"{wanted} no result store at {store}; name a run's folder, or pass --store")
    records = {record.id: record for record in ResultStore(store).runs()}
    if not records:
        raise OodscopeError(f"{store}: no run yet")
    if run and run not in records:
        raise OodscopeError(f"{store}: no run {run!r}, and no such folder. Runs: {', '.join(records)}")
    record = records[run] if run else list(records.values())[-1]
    return pivot(ResultStore(store).measurements(run=record.id), protocol or record.protocols[0], metric or None)


def print_table(table: "Table", format: str) -> None:
    """Print a table in the terminal's width, or in the format that was asked for."""
    if format == "rich":
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(format).rstrip("\n"))
