"""The report: one HTML file that needs nothing but a browser."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json
from oodscope.document.chapter import Block, Chapter, anchor_of
from oodscope.document.figure import Figure, figure_name, positions_of
from oodscope.protocols.registry import in_order
from oodscope.report.page.attack import AttackView, attack_view
from oodscope.report.page.crossval import CrossvalView, crossval_view, metric_part, overall_tables
from oodscope.report.page.figures import (
    FEW,
    PlotGroup,
    attack_plots,
    detector_plots,
    result_plots,
)
from oodscope.report.page.first import ROLE_WORDS, first_screen
from oodscope.report.page.gallery import picture_rules, render_gallery
from oodscope.report.page.generated import GeneratedView, generated_view
from oodscope.report.page.networks import distinctions, network_name
from oodscope.report.page.placing import TEMPLATES, numbered_runs, ordered, place, placed_trials
from oodscope.report.page.scorecard import scorecard
from oodscope.report.page.tables import protocol_sections
from oodscope.report.page.templating import data_uri, render_plotted
from oodscope.report.page.verdict import chance_warnings, verdicts
from oodscope.results.opening import of_kind
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.runs.attack.run import PROTOCOL as ATTACK
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import HEADLINE, CrossValidation
from oodscope.runs.crossval.run import PROTOCOL as CROSSVAL
from oodscope.runs.crossval.study import variance_table
from oodscope.runs.crossval.trials import finished_study
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import PROTOCOL as GENERATED
from oodscope.runs.generated.run import GeneratedStudy

FPR95 = "fpr95_id_positive"
"""What readers may switch the scorecard to."""


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
class StudyChapter:
    """A study that has a page of its own, in short: what its partial templates show, and its plots."""

    anchor: str
    view: AttackView | CrossvalView | GeneratedView
    groups: list[PlotGroup]


def write_report(
    runs: Run | Sequence[Run], path: Path | str, *, title: str | None = None, links: Mapping[str, str] | None = None
) -> Path:
    """Write the report of one run, or of runs of every kind, to ``path``::

        oods.write_report(oods.open_runs("runs"), "report.html")

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


def render(runs: Run | Sequence[Run], title: str | None = None, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page as text."""
    opened = [runs] if isinstance(runs, Run) else list(runs)
    trials = placed_trials(opened)
    positions = _positions(opened)
    card, apart = scorecard(trials), distinctions(opened)
    return render_plotted(
        "report.html",
        "sort.js",
        "filter.js",
        filters={
            "settings": _settings,
            "block": _block_kind,
            "picture": data_uri,
            "network": lambda record: network_name(record, apart),
        },
        title=title or _title(opened),
        links=links,
        protocols=in_order(name for run in opened for name in run.record.protocols),
        records=[record for run, _ in ordered(opened) for record in run.records()],
        first=first_screen(opened, card, positions),
        verdicts=verdicts(opened, trials),
        warnings=chance_warnings(trials),
        roles=ROLE_WORDS,
        card=card,
        other_card=scorecard(placed_trials(opened, FPR95)),
        sections=protocol_sections(opened),
        chapters=[_result_chapter(each, number, positions) for number, each in enumerate(of_kind(opened, Result), 1)],
        crossvals=list(_crossvals(of_kind(opened, CrossValidation), positions)),
        attacks=[_attack(each, number, positions) for number, each in enumerate(of_kind(opened, Attack), 1)],
        studies=[
            StudyChapter(f"{anchor_of(GENERATED)}-{number}", generated_view(study, number), [])
            for number, study in enumerate(of_kind(opened, GeneratedStudy), 1)
        ],
        others=[_chapter(run, number) for run, number in numbered_runs(opened) if run.kind not in TEMPLATES],
    )


def _chapter(run: Run, number: int) -> Chapter:
    """A chapter by its blocks, under ids that no other run has on the page."""
    chapter = run.chapter()
    blocks = (
        replace(each, name=figure_name(each.name, run.kind, str(number))) if isinstance(each, Figure) else each
        for each in chapter.blocks
    )
    return replace(chapter, anchor=place(run, number, chapter.anchor), blocks=tuple(blocks))


def _block_kind(block: Block) -> str:
    return type(block).__name__.lower()


def _positions(runs: Sequence[Run]) -> dict[str, int]:
    """One position for each detector of the page, whichever run it is in: first come, first served."""
    ranked = [each["id"] for result in of_kind(runs, Result) for each in _detectors(result)]
    attacked = [name for attack in of_kind(runs, Attack) for name in attack.detectors]
    validated = [name for each in of_kind(runs, CrossValidation) for name in each.draws.detectors]
    return positions_of([*ranked, *attacked, *validated])


def _title(runs: Sequence[Run]) -> str:
    first = [*of_kind(runs, Result), *of_kind(runs, Attack)]
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


def _attack(attack: Attack, number: int, places: Mapping[str, int]) -> StudyChapter:
    view = attack_view(attack, brief=True)
    return StudyChapter(f"{anchor_of(ATTACK)}-{number}", view, attack_plots(attack, view.detectors, number, places))


def _crossvals(runs: Sequence[CrossValidation], places: Mapping[str, int]) -> Iterator[StudyChapter]:
    for number, run in enumerate(runs, 1):
        table = run.draws
        study = finished_study(table)
        if study is None:  # its record still stands under provenance
            continue
        part = metric_part(study, variance_table(table, HEADLINE), places, pairs=False, run=number)
        view = crossval_view(table, [part], overall_tables(table, [study]))
        yield StudyChapter(f"{anchor_of(CROSSVAL)}-{number}", view, [])


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
