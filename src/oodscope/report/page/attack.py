"""The page of an attack: what is left of each detector, and the pictures that fool it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oodscope.base.files import write_text
from oodscope.document.figure import positions_of
from oodscope.document.formats import FORMATS
from oodscope.document.table import Table
from oodscope.report.page.figures import attack_plots
from oodscope.report.page.templating import data_uri, render_plotted
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.runs.attack.run import CLEAN, PROTOCOL, SEARCH, TRANSFER, Attack, SearchedPair
from oodscope.runs.attack.table import attack_table
from oodscope.runs.attack.verdict import attack_verdict, broken_first

_BRIEF = 5
"""Images of each search on a page that is about more."""


@dataclass(frozen=True)
class Thumbnail:
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
    thumbnails: list[Thumbnail]
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
    """Everything that a page shows of one attack; pictures begin with the detector that is left with least."""

    record: RunRecord
    about: Mapping[str, Any]
    table: Table
    detectors: list[str]
    panels: dict[str, list[Panel]]
    verdict: str
    searches: list[tuple[SearchedPair, dict[str, float]]]
    costs: list[tuple[str, float | None]]


def render(attack: Attack) -> str:
    """The page as text."""
    view, rows = attack_view(attack), attack.result.measurements
    groups = {each.title: each for each in attack_plots(attack, view.detectors, 1, positions_of(view.detectors))}
    return render_plotted(
        "attack.html",
        attack=view,
        budget=groups["Budget"],
        parameters=groups.get("Parameters"),
        heats=list(_heats(rows.filter(protocol=TRANSFER), view.detectors)),
    )


def attack_view(attack: Attack, *, brief: bool = False) -> AttackView:
    """What pages show of an attack.

    Parameters
    ----------
    brief : a few images of each search, for a page that shows more than one attack.
    """
    table = attack_table(attack)
    order = [row.name for row in table.rows]
    rows = attack.result.measurements
    return AttackView(
        record=attack.result.record,
        about=attack.result.scores.context.extra["attack"],
        table=table,
        detectors=order,
        panels={
            name: [_panel(attack, name, each, brief) for each in attack.variations] for name in broken_first(attack)
        },
        verdict=attack_verdict(attack),
        searches=list(_diagnostics(attack, order)),
        costs=_costs(rows.filter(protocol=PROTOCOL, metric="auroc", group=CLEAN), order),
    )


def _heats(rows: Measurements, order: list[str]) -> Iterator[Heat]:
    for variation in rows.distinct("group"):
        found = {(row.detector, row.set): row for row in rows.filter(group=variation)}
        yield Heat(variation, order, [[found[judge, against] for against in order] for judge in order])


def _panel(attack: Attack, detector: str, variation: str, brief: bool) -> Panel:
    pair = attack.search(detector, variation)
    rows = attack.result.measurements.filter(protocol=PROTOCOL, metric="auroc", detector=detector)
    (attacked,), (clean,) = rows.filter(group=variation), rows.filter(group=CLEAN)
    return Panel(variation, attacked, clean, list(_thumbnails(pair, _BRIEF if brief else None)), pair.flags)


def _thumbnails(pair: SearchedPair, images: int | None) -> Iterator[Thumbnail]:
    worst = pair.worst
    for number, image in enumerate(worst.images[:images]):
        source = "" if worst.sources is None else data_uri(worst.sources[number])
        place = (int(worst.ranks[number]), int(worst.chains[number]), float(worst.scores[number]))
        yield Thumbnail(data_uri(image), source, *place)


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
