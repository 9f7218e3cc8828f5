"""The report: one HTML file that needs nothing but a browser."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json
from oodscope.document.figure import Figure, positions_of
from oodscope.report.page.attack import AttackView, attack_view
from oodscope.report.page.crossval import CrossvalView, crossval_view, metric_part, overall_sheets
from oodscope.report.page.figures import (
    FEW,
    PlotGroup,
    attack_plots,
    detector_plots,
    result_plots,
)
from oodscope.report.page.gallery import picture_rules, render_gallery
from oodscope.report.page.generated import GeneratedView, generated_view
from oodscope.report.page.scorecard import scorecard
from oodscope.report.page.tables import protocol_sections
from oodscope.report.page.templating import render_plotted
from oodscope.report.page.trials import CROSSVAL_METRIC, finished_study, section, trials
from oodscope.report.page.verdict import verdicts
from oodscope.results.record import RunRecord
from oodscope.runs.attack.run import PROTOCOL as ATTACK
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import variance_table
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import PROTOCOL as GENERATED
from oodscope.runs.opened import CROSS_VALIDATION, OpenedRuns


@dataclass(frozen=True)
class ResultChapter:
    """The plots and detectors of one evaluation."""

    number: int
    record: RunRecord
    groups: list[PlotGroup]
    single: dict[str, list[Figure]]
    detectors: list[dict[str, Any]]
    gallery: Markup
    pictures: Markup


@dataclass(frozen=True)
class Chapter:
    """A study that has a page of its own, in short: what its partial templates show, and its plots."""

    anchor: str
    view: AttackView | CrossvalView | GeneratedView
    groups: list[PlotGroup]


def write_report(
    runs: Result | OpenedRuns, path: Path | str, *, title: str | None = None, links: Mapping[str, str] | None = None
) -> Path:
    """Write the report of one run, or of runs of every kind, to ``path``.

    The file holds everything it shows (plots as data, the scripts that draw and sort, styles, pictures) and asks no
    network for anything. Every number comes from measurements or tables of the runs, every plot from their scores.

    Parameters
    ----------
    title : the heading; by default the benchmarks and models.
    links : other pages by name, relative to this one.

    Examples
    --------
    >>> oods.write_report(result, folder / "report.html").name
    'report.html'
    """
    path = Path(path)
    write_text(path, render(runs, title, links or {}))
    return path


def render(runs: Result | OpenedRuns, title: str | None = None, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page as text."""
    opened = OpenedRuns(results=(runs,)) if isinstance(runs, Result) else runs
    found = trials(opened)
    places = _positions(opened)
    return render_plotted(
        "report.html",
        "sort.js",
        "filter.js",
        filters={"settings": _settings},
        title=title or _title(opened),
        links=links,
        runs=opened,
        records=opened.records(),
        verdicts=verdicts(opened, found),
        card=scorecard(found),
        sections=protocol_sections(opened),
        chapters=[_result_chapter(result, number, places) for number, result in enumerate(opened.results, 1)],
        crossvals=list(_crossvals(opened.crossvals, places)),
        attacks=[_attack(attack, number, places) for number, attack in enumerate(opened.attacks, 1)],
        studies=[
            Chapter(section(GENERATED, number), generated_view(study, number), [])
            for number, study in enumerate(opened.generated, 1)
        ],
    )


def _positions(runs: OpenedRuns) -> dict[str, int]:
    """One position for each detector of the page, whichever run it is in: first come, first served."""
    ranked = [each["id"] for result in runs.results for each in _detectors(result)]
    attacked = [name for attack in runs.attacks for name in attack.detectors]
    validated = [name for table in runs.crossvals for name in table.detectors]
    return positions_of([*ranked, *attacked, *validated])


def _title(runs: OpenedRuns) -> str:
    first = [*runs.results, *(attack.result for attack in runs.attacks)]
    named = dict.fromkeys(f"{each.record.benchmark}: {each.record.model}" for each in first)
    if not named:
        return "Out-of-distribution detection"
    return next(iter(named)) if len(named) == 1 else f"{next(iter(named))} and {len(named) - 1} more"


def _result_chapter(result: Result, number: int, places: Mapping[str, int]) -> ResultChapter:
    detectors = _detectors(result)
    names = [each["id"] for each in detectors]
    return ResultChapter(
        number,
        result.record,
        result_plots(result, names, number, places),
        detector_plots(result, names, number),
        detectors,
        render_gallery(result, names[:FEW]),
        Markup(picture_rules(result.gallery)),
    )


def _attack(attack: Attack, number: int, places: Mapping[str, int]) -> Chapter:
    view = attack_view(attack, brief=True)
    return Chapter(section(ATTACK, number), view, attack_plots(attack, view.detectors, number, places))


def _crossvals(tables: Sequence[CrossValidationTable], places: Mapping[str, int]) -> Iterator[Chapter]:
    for number, table in enumerate(tables, 1):
        study = finished_study(table)
        if study is None:  # its record still stands under provenance
            continue
        part = metric_part(study, variance_table(table, CROSSVAL_METRIC), places, pairs=False, run=number)
        view = crossval_view(table, [part], list(overall_sheets([study])))
        yield Chapter(section(CROSS_VALIDATION, number), view, [])


def _detectors(result: Result) -> list[dict[str, Any]]:
    """Each detector as it was run, in the order in which the first table ranks them."""
    described = result.scores.context.detectors
    leading: Iterable[str] = (
        row.name
        for protocol in result.record.protocols
        if result.measurements.filter(protocol=protocol)
        for row in result.table(protocol).rows
    )
    order = dict.fromkeys(name for name in (*leading, *result.scores.detectors) if name in described)
    return [{"id": name, **described[name].model_dump()} for name in order]


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={canonical_json(value)}" for name, value in params.items()) or "–"
