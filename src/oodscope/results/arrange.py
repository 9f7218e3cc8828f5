"""From measurements to a grid: choose one metric and one protocol, sort the detectors, mark the best."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from oodscope.base.errors import DataError
from oodscope.results.grid import Cell, Column, Grid, Row
from oodscope.results.measurement import MEAN, Measurement
from oodscope.results.measurements import Measurements
from oodscope.results.wording import CLOSE, EXPOSED, TRACKS, explanation, higher_is_better

RANKED = ("near", "far")
"""Groups in which a detector can win. Against csid sets a good detector should separate little, not much."""


def arrange(measurements: Measurements, protocol: str, metric: str) -> Grid:
    """Arrange one metric under one protocol. Two values for one cell are an error: filter by run first."""
    higher = higher_is_better(metric)
    chosen = measurements.filter(protocol=protocol, metric=metric)
    if not chosen:
        known = ", ".join(measurements.filter(metric=metric).distinct("protocol")) or "none"
        raise DataError(f"no {metric} was measured under protocol {protocol!r}; protocols with it: {known}")
    columns = _columns(chosen)
    cells = _cells(chosen)
    rows = []
    for tuning in TRACKS:
        detectors = dict.fromkeys(row.detector for row in chosen if row.tuning == tuning)
        track = [[cells.get((tuning, name, column)) for column in columns] for name in detectors]
        marked = [_mark(column, entries, higher) for column, entries in zip(columns, zip(*track))]
        rows += sorted(
            (Row(name, tuning, entries) for name, entries in zip(detectors, zip(*marked))),
            key=lambda row: _sort_key(row, higher),
        )
    accuracy = measurements.filter(protocol=protocol, metric="accuracy", detector="")
    return Grid(
        protocol,
        metric,
        tuple(columns),
        tuple(rows),
        tuple((row.set, Cell(row.value, row.low, row.high, exposure=row.exposure)) for row in accuracy),
        tuple(_notes(chosen + accuracy, columns)),
    )


def _columns(chosen: Iterable[Measurement]) -> list[Column]:
    seen = dict.fromkeys(Column(row.group, row.set) for row in chosen)
    groups = dict.fromkeys([*RANKED, *(column.group for column in seen)])
    # the mean first: it is what the rows are sorted by, and what a narrow screen shows
    return [c for group in groups for c in sorted(seen, key=lambda c: c.set != MEAN) if c.group == group]


def _cells(chosen: Iterable[Measurement]) -> dict[tuple[str, str, Column], Cell]:
    cells: dict[tuple[str, str, Column], Cell] = {}
    for row in chosen:
        key = (row.tuning, row.detector, Column(row.group, row.set))
        if key in cells:
            raise DataError(
                f"two values of {row.metric} for {row.detector} on {key[2].name} ({row.protocol}); "
                "choose one run, such as filter(run=...)"
            )
        cells[key] = Cell(row.value, row.low, row.high, exposure=row.exposure)
    return cells


def _mark(column: Column, cells: Sequence[Cell | None], higher: bool) -> list[Cell | None]:
    """Mark the best of a column, and those that its interval does not tell apart from it."""
    present = [cell for cell in cells if cell is not None]
    if column.group not in RANKED or len(present) < 2:
        return list(cells)
    pick = max if higher else min
    best = pick(present, key=lambda cell: cell.value)

    def marked(cell: Cell) -> Cell:
        leads = cell.value == best.value
        return replace(cell, best=leads, close=not leads and cell.overlaps(best))

    return [None if cell is None else marked(cell) for cell in cells]


def _sort_key(row: Row, higher: bool) -> tuple[bool, float, str]:
    lead = row.cells[0]
    return (lead is None, 0.0 if lead is None else lead.value * (-1 if higher else 1), row.detector)


def _notes(chosen: Measurements, columns: Sequence[Column]) -> list[str]:
    metric = chosen[0].metric
    notes = [explanation(metric)]
    ranked = chosen.filter(metric=metric)
    alike = " among detectors tuned alike" if len(ranked.distinct("tuning")) > 1 else ""
    methods = {(row.level, row.interval) for row in ranked if row.low is not None}
    if methods:
        said = "; ".join(f"{100 * (level or 0):g} % ({method})" for level, method in sorted(methods, key=str))
        notes.append(
            f"Bold: best of its column{alike}. {CLOSE}: its interval overlaps that of the best; this table "
            f"alone does not tell them apart, a paired test may. Intervals: {said}."
        )
    else:
        notes.append(f"Bold: best of its column{alike}. No intervals were measured.")
    if unranked := list(dict.fromkeys(c.group for c in columns if c.group not in RANKED)):
        notes.append(f"Columns of {', '.join(unranked)} are shown for information and not ranked.")
    if "csid" in unranked and metric == "auroc":
        notes.append("csid: ID against covariate-shifted ID; 50 is no reaction to the shift.")
    if exposed := dict.fromkeys(said for row in chosen for said in row.exposure.split("; ") if said):
        notes.append(f"{EXPOSED}: the network has met images of this value before ({'; '.join(exposed)}).")
    return notes
