"""The outputs of a study by cross-validation: one page, tables for papers and programs, figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oodscope.base.files import atomic_path, write_text
from oodscope.document.figure import Figure, positions_of
from oodscope.document.formats import FORMATS
from oodscope.document.number import Number
from oodscope.document.table import Table
from oodscope.metrics.catalog import CROSSVAL, METRICS
from oodscope.metrics.crossval.metrics import PRINTED_AS
from oodscope.metrics.metric import Metric
from oodscope.report.page.figures import numbered
from oodscope.report.page.templating import render_plotted
from oodscope.report.page.verdict import sureness
from oodscope.runs.crossval import sheets
from oodscope.runs.crossval.fidelity import FORMS, accuracies, claims, lead, selections
from oodscope.runs.crossval.figures import agreement, average_ranks, convergence, estimates, fold_values, variance_bars
from oodscope.runs.crossval.run import HEADLINE, CrossValidationTable
from oodscope.runs.crossval.study import MetricStudy, study_metric, variance_table
from oodscope.runs.crossval.trials import finished_study, trials_of
from oodscope.runs.evaluation.chance import separation_at_chance

_HIDDEN = ("truth-standard-errors", "p-values-holm", "p-values-bh", "counts-0.1", "counts-0.01", "against-truth-p")
"""Sheets that are written but not shown on the page."""


@dataclass(frozen=True)
class MetricPart:
    """What the page shows of one metric, and what is written beside it."""

    study: MetricStudy
    metric: Metric
    sheets: list[Table]
    figures: list[Figure]
    variance: pd.DataFrame

    @property
    def printed(self) -> bool:
        """Whether the paper prints the metric."""
        return self.study.metric in PRINTED_AS

    @property
    def selections(self) -> list[tuple[str, MetricStudy]]:
        """The detectors that rates are shown of, in words, and the study of each."""
        return [(f"features {FORMS[each.form]}, {each.detectors}", each.study) for each in selections(self.study)]

    @property
    def shown(self) -> list[Table]:
        """The sheets that the page holds; the others are files only."""
        return [sheet for sheet in self.sheets if sheet.name not in _HIDDEN]


def write_crossval(
    table: CrossValidationTable, folder: Path | str, *, test: str | None = None, auto_parametric: bool | None = None
) -> list[Path]:
    """Write ``crossval.html``, ``tables/`` and ``figures/`` of a study to a folder; the paths, the page first.

    Every number comes from the table alone. Tests over cells need 8 cells, and hit rates need hold-outs beside the
    cross-validations; what a study is too small for is left out, and the page says so.

    Parameters
    ----------
    test, auto_parametric : how detectors are compared (:func:`cell_tests`); as the plan of the study says unless given.
    """
    folder = Path(folder)
    measured = sorted((each.name for each in CROSSVAL if each.name in table.metrics), key=lambda name: name != HEADLINE)
    studies = [study_metric(table, name, test=test, auto_parametric=auto_parametric) for name in measured]
    places = positions_of(table.detectors)
    parts = [metric_part(study, variance_table(table, study.metric), places) for study in studies]
    overall = overall_tables(table, studies)
    written = [folder / "crossval.html"]
    write_text(written[0], render_plotted("crossval.html", crossval=crossval_view(table, parts, overall)))
    for sheet in overall:
        written += _write_sheet(sheet, folder / "tables")
    for part in parts:
        own = folder / "tables" / part.study.metric
        for sheet in part.sheets:
            written += _write_sheet(sheet, own)
        for name, frame in _frames(part):
            with atomic_path(own / f"{name}.csv") as temporary:
                frame.to_csv(temporary, index=False, lineterminator="\n")
            written.append(own / f"{name}.csv")
        for figure in part.figures:
            kind = figure.name.partition("-")[0]
            written.append(_write_figure(figure, folder / "figures" / f"{kind}-{part.study.metric}.svg"))
    return written


def _write_figure(figure: Figure, path: Path) -> Path:
    # drawing for print is asked for here alone, and takes a second to import
    from oodscope.report.paper.style import house_style, write_figure
    from oodscope.report.render.mpl import mpl_figure

    with house_style():
        return write_figure(mpl_figure(figure), path)


def _write_sheet(sheet: Table, folder: Path) -> list[Path]:
    written = []
    for format in ("csv", "markdown", "latex"):
        path = folder / f"{sheet.name}.{FORMATS[format].ending}"
        write_text(path, sheet.render(format))
        written.append(path)
    return written


def metric_part(
    study: MetricStudy, variance: pd.DataFrame, positions: Mapping[str, int], *, pairs: bool = True, run: int = 0
) -> MetricPart:
    """The tables and figures of one metric.

    Parameters
    ----------
    positions : of the detectors on the page.
    pairs : the tables that compare every two detectors, too.
    run : the number of the study on a page that shows several; 0 on a page of its own.
    """
    metric = METRICS[study.metric]
    tables = list(sheets.metric_sheets(study) if pairs else sheets.cell_sheets(study))
    figures = list(_figures(study, variance, positions))
    return MetricPart(study, metric, tables, numbered(figures, run) if run else figures, variance)


def _figures(study: MetricStudy, variance: pd.DataFrame, positions: Mapping[str, int]) -> Iterator[Figure]:
    if study.has_folds:
        yield fold_values(study, positions)
    yield estimates(study)
    if study.testable and len(lead(study).detectors) > 2:
        yield average_ranks(lead(study))
    if study.has_truth and study.has_folds:
        yield agreement(study, positions)
    if len(study.hold_outs) > 1:
        yield convergence(study, positions)
    if not variance.empty:
        yield variance_bars(study.metric, variance)


def _frames(part: MetricPart) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "cells", part.study.to_dataframe()
    if part.study.has_folds and len(part.study.detectors) > 1:
        yield "fold-tests", part.study.fold_tests
    if not part.variance.empty:
        yield "variance", part.variance


def overall_tables(table: CrossValidationTable, studies: Sequence[MetricStudy]) -> list[Table]:
    """The tables over all metrics, and that of the networks."""
    networks = accuracies(table)
    return [*sheets.overall_sheets(studies), *([] if networks is None else [networks])]


@dataclass(frozen=True)
class CrossvalVerdict:
    """Who leads a study, how sure that is, and where the leader is weakest.

    Parameters
    ----------
    sureness : as the verdict of every report says it.
    weakest : the cell in which the leader is worst, in words, and its value there.
    warning : that no detector is shown to be better than chance; empty otherwise.
    """

    leader: str
    what: str
    value: Number
    sureness: str
    weakest: tuple[str, Number]
    warning: str


@dataclass(frozen=True)
class CrossvalView:
    """Everything that a page shows of a study by cross-validation.

    Parameters
    ----------
    verdict : None where the metric that ranks was not measured.
    """

    verdict: CrossvalVerdict | None
    study: MetricStudy
    parts: Sequence[MetricPart]
    overall: Sequence[Table]
    claims: list[str]
    notes: list[str]
    trainings: list[str]
    pairs: list[str]
    metadata: Mapping[str, Any]


def crossval_view(table: CrossValidationTable, parts: Sequence[MetricPart], overall: Sequence[Table]) -> CrossvalView:
    """What a page shows of a study."""
    study = parts[0].study
    headline = next((part.study for part in parts if part.study.metric == HEADLINE), study)
    return CrossvalView(
        verdict=_verdict(table),
        study=study,
        parts=parts,
        overall=overall,
        claims=claims(table, headline),
        notes=list(_notes(table, study)),
        trainings=list(dict.fromkeys(cell.training.replace("_", " ") for cell in study.cells)),
        pairs=list(dict.fromkeys(cell.pair for cell in study.cells)),
        metadata=table.metadata,
    )


def _verdict(table: CrossValidationTable) -> CrossvalVerdict | None:
    trials, study = list(trials_of(table)), finished_study(table)
    if not trials or study is None:
        return None
    (trial,) = trials
    leader = trial.entries[0]
    own = study.estimate[study.detectors.index(leader.detector)]
    cell = int(own.argmin())
    return CrossvalVerdict(
        leader.detector,
        f"{trial.what} over {trial.where}",
        leader.cell,
        sureness(trial, trial.entries),
        (str(study.cells[cell]), Number(float(own[cell]))),
        separation_at_chance(leader.cell),
    )


def _notes(table: CrossValidationTable, study: MetricStudy) -> Iterator[str]:
    for kind, words in (("fold", "cross-validation"), ("hold_out", "hold-out")):
        if missing := table.incomplete(kind):
            yield f"{len(missing)} repetition(s) of the {words} are not complete and are left out."
    if not study.has_truth:
        yield "No hold-outs were made, so there is no truth to compare the cross-validations with."
    if not study.has_folds:
        yield "No cross-validations were made; only the repeated hold-out is shown."
    if not study.testable:
        yield (
            f"{len(study.cells)} cells and {len(study.detectors)} detector(s): tests over cells need at least 8 cells "
            "and 2 detectors, so there are no tests over cells, no hit rates and no ranks here. What can be said of "
            "each cell alone is in the table of pairs that differ in a cell."
        )
    if not table.crossed(study.metric).empty and variance_table(table, study.metric).empty:
        yield (
            "The crossed design is too small to separate the sources of variance, or not finished: it needs 2 ID "
            "splits, 2 draws of OOD classes and 2 seeds."
        )
    yield (
        "Tests over cells treat every cell as an independent observation. The cells share ID sets, networks and OOD "
        "sets, so p-values come out too small; hit and error rates compare two such tables with each other."
    )
    if study.disjoint:
        yield (
            "The truth is of one half of the images of every class, the cross-validations are of the other: they share "
            "no image, and each has half of the images to train on."
        )
    yield (
        "The truth is that of these images and classes: more hold-outs narrow its standard error, while the interval "
        "for other OOD classes stays as wide as the classes are few."
    )
