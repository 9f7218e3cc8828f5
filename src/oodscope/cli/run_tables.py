"""The tables of a run, whatever kind of run it is."""

from pathlib import Path
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult

from oodscope.base.errors import OodscopeError
from oodscope.results.arrange import pivot
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.table import attack_table
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.crossval.summary import HEADLINE
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import PROTOCOL, GeneratedStudy
from oodscope.runs.generated.table import calibration_table, separation_table
from oodscope.runs.opened import open_runs


class Printable(Protocol):
    """A table in a terminal, and in the format that a reader asks for."""

    def render(self, format: str) -> str:
        """The table as text of a format."""
        ...

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult: ...


def tables_of(place: str | Path, protocol: str = "", metric: str = "") -> dict[str, Printable]:
    """Every table of the run in a folder by its name, the one that is read first in front.

    Parameters
    ----------
    protocol, metric : choose among the numbers of an evaluation or attack; a study has its own tables of one metric.
    """
    opened = open_runs([place])
    count = sum(map(len, (opened.results, opened.attacks, opened.crossvals, opened.generated)))
    if count > 1:
        raise OodscopeError(f"{place} holds {count} runs; a table is of one, name its folder")
    for result in opened.results:
        return _of_result(result, protocol, metric)
    for attack in opened.attacks:
        return _of_attack(attack, protocol, metric)
    if protocol:
        raise OodscopeError(f"{place}: a study has no protocols to choose from; leave out --protocol, or use --sheet")
    for study in opened.generated:
        return _of_generated(study, metric)
    return _of_crossval(opened.crossvals[0], metric)


def _of_result(result: Result, protocol: str, metric: str) -> dict[str, Printable]:
    chosen = protocol or result.record.protocols[0]
    return {chosen: pivot(result.measurements, chosen, metric or None)}


def _of_attack(attack: Attack, protocol: str, metric: str) -> dict[str, Printable]:
    if protocol or metric:
        return _of_result(attack.result, protocol, metric)
    return {"attack": attack_table(attack)}


def _of_generated(study: GeneratedStudy, metric: str) -> dict[str, Printable]:
    calibrated = {row.metric for each in study.results for row in each.measurements.filter(protocol=PROTOCOL)}
    if metric in calibrated:
        return {"calibration": calibration_table(study, metric)}
    detectors: dict[str, Printable] = {"detectors": separation_table(study, metric or "auroc")}
    return detectors if metric else {**detectors, "calibration": calibration_table(study)}


def _of_crossval(table: CrossValidationTable, metric: str) -> dict[str, Printable]:
    from oodscope.report.page.crossval import metric_sheets, overall_sheets

    chosen = study_metric(table, metric or (HEADLINE if HEADLINE in table.metrics else table.metrics[0]))
    studies = [study_metric(table, name) for name in table.metrics]
    return {sheet.name: sheet for sheet in (*metric_sheets(chosen), *overall_sheets(studies))}
