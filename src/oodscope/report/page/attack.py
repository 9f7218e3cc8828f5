"""The page of an attack: what is left of each detector, and the pictures that fool it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.document.formats import FORMATS
from oodscope.document.table import Table
from oodscope.report.attack_figures import budget_curves, parameter_histogram
from oodscope.report.page.templating import data_uri, render_page
from oodscope.report.svg import style_of
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.runs.attack.run import BUDGET, CLEAN, PROTOCOL, SEARCH, TRANSFER, Attack, SearchedPair
from oodscope.runs.attack.table import attack_table

_BRIEF = 5
"""Images of each search on a page that is about more."""


@dataclass(frozen=True)
class Sight:
    """One of the worst images, with its source where it has one."""

    image: str
    source: str
    rank: int
    chain: int
    score: float


@dataclass(frozen=True)
class Panel:
    """What one variation did to one detector."""

    variation: str
    auroc: Measurement
    clean: Measurement
    sights: list[Sight]
    histograms: list[tuple[str, Markup]]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Heat:
    """Transfer under one variation: ``cells[i][j]`` is the AUROC of detector i on images found against j."""

    variation: str
    names: list[str]
    cells: list[list[Measurement]]


def write_attack(attack: Attack, folder: Path | str) -> Path:
    """Write ``report.html`` and its table as ``table.csv``, ``table.md`` and ``table.tex``; the path of the page.

    The page holds everything it shows and asks no network for anything.
    """
    folder = Path(folder)
    table = attack_table(attack)
    for format in ("csv", "markdown", "latex"):
        write_text(folder / f"table.{FORMATS[format].ending}", table.render(format))
    path = folder / "report.html"
    write_text(path, render(attack))
    return path


@dataclass(frozen=True)
class AttackView:
    """Everything that a page shows of one attack, in the order of the table's detectors."""

    record: RunRecord
    about: Mapping[str, Any]
    table: Table
    styles: dict[str, str]
    headlines: list[tuple[str, Measurement, Measurement]]
    panels: dict[str, list[Panel]]
    searches: list[tuple[SearchedPair, dict[str, float]]]
    costs: list[tuple[str, float | None]]


def render(attack: Attack) -> str:
    """The page as text."""
    view, rows = attack_view(attack), attack.result.measurements
    return render_page(
        "attack.html",
        attack=view,
        curves=[_curves(rows, name, view.styles) for name in attack.variations],
        heats=list(_heats(rows.filter(protocol=TRANSFER), list(view.styles))),
    )


def attack_view(attack: Attack, *, brief: bool = False) -> AttackView:
    """What pages show of an attack.

    Parameters
    ----------
    brief : a few images of each search and no drawings, for a page that shows more than one attack.
    """
    table = attack_table(attack)
    order = [row.name for row in table.rows]
    styles = {name: style_of(number) for number, name in enumerate(order)}
    rows = attack.result.measurements
    return AttackView(
        record=attack.result.record,
        about=attack.result.scores.context.extra["attack"],
        table=table,
        styles=styles,
        headlines=list(_headlines(rows.filter(protocol=PROTOCOL, metric="auroc"))),
        panels={
            name: [_panel(attack, name, each, styles[name], brief) for each in attack.variations] for name in order
        },
        searches=list(_diagnostics(attack, order)),
        costs=_costs(rows.filter(protocol=PROTOCOL, metric="auroc", group=CLEAN), order),
    )


def _headlines(rows: Measurements) -> Iterator[tuple[str, Measurement, Measurement]]:
    """Under each variation the detector that holds best, and the one that is left with least."""
    for group in rows.distinct("group"):
        ordered = sorted(rows.filter(group=group), key=lambda row: row.value)
        yield group, ordered[-1], ordered[0]


def _curves(rows: Measurements, variation: str, styles: Mapping[str, str]) -> tuple[str, Markup, Markup]:
    own = rows.filter(protocol=BUDGET, group=variation)
    budgets = sorted({int(row.set) for row in own})
    figures = []
    for metric, words in (("auroc", "AUROC in percent"), ("lowest_score", "lowest score, standardised")):
        found = {(row.detector, int(row.set)): row.value for row in own.filter(metric=metric)}
        curves = {name: np.array([found[name, budget] for budget in budgets]) for name in styles}
        figures.append(budget_curves(budgets, curves, styles, f"{variation}: {words}", metric == "auroc"))
    return variation, figures[0], figures[1]


def _heats(rows: Measurements, order: list[str]) -> Iterator[Heat]:
    for variation in rows.distinct("group"):
        found = {(row.detector, row.set): row for row in rows.filter(group=variation)}
        yield Heat(variation, order, [[found[judge, against] for against in order] for judge in order])


def _panel(attack: Attack, detector: str, variation: str, style: str, brief: bool) -> Panel:
    pair = attack.search(detector, variation)
    rows = attack.result.measurements.filter(protocol=PROTOCOL, metric="auroc", detector=detector)
    (attacked,), (clean,) = rows.filter(group=variation), rows.filter(group=CLEAN)
    histograms = [
        (name, parameter_histogram(pair.found[:, column].astype(np.float64), f"{detector}, {variation}: {name}", style))
        for column, name in enumerate(() if brief else pair.parameters)
    ]
    return Panel(variation, attacked, clean, list(_sights(pair, _BRIEF if brief else None)), histograms, pair.flags)


def _sights(pair: SearchedPair, images: int | None) -> Iterator[Sight]:
    worst = pair.worst
    for number, image in enumerate(worst.images[:images]):
        source = "" if worst.sources is None else data_uri(worst.sources[number])
        place = (int(worst.ranks[number]), int(worst.chains[number]), float(worst.scores[number]))
        yield Sight(data_uri(image), source, *place)


def _diagnostics(attack: Attack, order: list[str]) -> Iterator[tuple[SearchedPair, dict[str, float]]]:
    rows = attack.result.measurements.filter(protocol=SEARCH)
    for detector in order:
        for variation in attack.variations:
            own = rows.filter(detector=detector, group=variation)
            yield attack.search(detector, variation), {row.metric: row.value for row in own}


def _costs(rows: Measurements, order: list[str]) -> list[tuple[str, float | None]]:
    """Seconds for 10,000 images."""
    found = {row.detector: row.microseconds_per_image for row in rows}
    return [(name, None if found[name] is None else 0.01 * (found[name] or 0.0)) for name in order]
