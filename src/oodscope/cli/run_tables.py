"""The tables of a stored run, whichever kind it is."""

from pathlib import Path

from oodscope.base.errors import OodscopeError
from oodscope.document.table import Table
from oodscope.protocols.arrange import pivot
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
