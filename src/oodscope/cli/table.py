"""``oodscope table``: the table people publish, from stored results."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.document.formats import format_of
from oodscope.document.table import Table
from oodscope.results.arrange import pivot
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.table import attack_table
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.crossval.summary import HEADLINE
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import PROTOCOL, GeneratedStudy
from oodscope.runs.generated.table import calibration_table, separation_table
from oodscope.runs.models.run import study_of
from oodscope.runs.opened import open_runs

STUDY = "study.json"
"""The file that a study of many models keeps beside its runs."""


def tables_of(place: str | Path, protocol: str = "", metric: str = "") -> dict[str, Table]:
    """Every table of the run in a folder by its name, the one that is read first in front.

    Parameters
    ----------
    protocol, metric : choose among the numbers of an evaluation or attack; a study has its own tables of one metric.
    """
    opened = open_runs([place])
    count = sum(map(len, (opened.results, opened.attacks, opened.crossvals, opened.generated)))
    if (Path(place) / STUDY).is_file() and opened.results and not protocol and not metric:
        study = study_of(opened.results)
        return {each.name: each for each in (study.table(), study.summary())}
    if count > 1:
        raise OodscopeError(f"{place} holds {count} runs; a table is of one, name its folder")
    for result in opened.results:
        return _of_result(result, protocol, metric)
    for attack in opened.attacks:
        return _of_attack(attack, protocol, metric)
    if protocol:
        raise OodscopeError(f"{place}: a study has no protocols to choose from; leave out --protocol, or use --sheet")
    for generated in opened.generated:
        return _of_generated(generated, metric)
    return _of_crossval(opened.crossvals[0], metric)


def _of_result(result: Result, protocol: str, metric: str) -> dict[str, Table]:
    chosen = protocol or result.record.protocols[0]
    return {chosen: pivot(result.measurements, chosen, metric or None)}


def _of_attack(attack: Attack, protocol: str, metric: str) -> dict[str, Table]:
    if protocol or metric:
        return _of_result(attack.result, protocol, metric)
    return {"attack": attack_table(attack)}


def _of_generated(study: GeneratedStudy, metric: str) -> dict[str, Table]:
    calibrated = {row.metric for each in study.results for row in each.measurements.filter(protocol=PROTOCOL)}
    if metric in calibrated:
        return {"calibration": calibration_table(study, metric)}
    detectors = {"detectors": separation_table(study, metric or "auroc")}
    return detectors if metric else {**detectors, "calibration": calibration_table(study)}


def _of_crossval(table: CrossValidationTable, metric: str) -> dict[str, Table]:
    from oodscope.report.page.crossval import metric_sheets, overall_sheets

    chosen = study_metric(table, metric or (HEADLINE if HEADLINE in table.metrics else table.metrics[0]))
    studies = [study_metric(table, name) for name in table.metrics]
    return {sheet.name: sheet for sheet in (*metric_sheets(chosen), *overall_sheets(studies))}


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
    format: Annotated[str, typer.Option(help="rich, markdown, csv, json, latex or html.")] = "rich",
    sheet: Annotated[
        str,
        typer.Option(help="Which table of a study, such as p-values or calibration; its first unless given."),
    ] = "",
    as_seeds: Annotated[
        bool, typer.Option("--as-seeds", help="Several folders are runs of one recipe: show their mean and spread.")
    ] = False,
) -> None:
    """Print the table of one run, or of the seeds of one recipe: detectors by sets, with intervals.

    Runs of crossval, attack and generate have tables of their own kind, in the same formats.
    """
    from oodscope.results.arrange import pivot
    from oodscope.results.store.store import ResultStore
    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.evaluation.seeds import over_seeds

    format_of(format)  # a typo is named before any file is read
    if as_seeds:
        print_table(
            over_seeds([Result.load(run) for run in runs or ()]).table(protocol or None, metric or None), format
        )
        return
    if len(runs or ()) > 1:
        raise OodscopeError("a table is of one run; several are seeds (--as-seeds) or rivals (oodscope compare)")
    run = runs[0] if runs else ""
    if Path(run).is_dir() and run:
        found = tables_of(run, protocol, metric)
        if sheet and sheet not in found:
            raise UnknownNameError("sheet", sheet, found, f"This run has: {', '.join(found)}")
        print_table(found[sheet] if sheet else next(iter(found.values())), format)
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


def print_table(table: Table, format: str) -> None:
    """Print a table in the terminal's width, or in the format that was asked for."""
    if format == "rich":
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(table.render(format))
