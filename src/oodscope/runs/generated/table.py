"""The tables of a study of generated sets: detectors by network and set, and calibration by network and set."""

from collections.abc import Iterable, Sequence

from oodscope.document.number import Number, marked
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.document.wording import CLOSE, EXPOSED, heading
from oodscope.metrics.catalog import METRICS
from oodscope.results.measurement import Measurement
from oodscope.runs.generated.run import WORST, GeneratedStudy

CIRCULAR = "↻"
"""Marks a network that had a part in making the generated images."""

GENERATED, REAL = "generated", "real"
"""Groups of columns."""


def separation_table(study: GeneratedStudy, metric: str = "auroc") -> Table:
    """A ranking metric of every detector, on generated and on real sets of OOD images."""
    found = study.separation(metric)
    sets = [*study.sanity.near(), *study.real]
    names = list(dict.fromkeys((network, detector) for network, detector, _ in found))
    cells = _cells([[found.get((*name, each)) for each in sets] for name in names], metric)
    rows = [Row((*_network(study, name), Entry(detector)), own) for (name, detector), own in zip(names, cells)]
    return _table(study, metric, ("detector",), sets, rows)


def calibration_table(study: GeneratedStudy, metric: str = "ece15") -> Table:
    """A calibration metric of every network: on ID test, on shifted sets, at worst and on each real csid set."""
    found = study.calibration(metric)
    sets = calibrated_sets(study, metric)
    cells = _cells([[found.get((name, each)) for each in sets] for name in study.networks], metric)
    rows = [Row(_network(study, name), own) for name, own in zip(study.networks, cells)]
    return _table(study, metric, (), sets, rows)


def calibrated_sets(study: GeneratedStudy, metric: str = "ece15") -> list[str]:
    """The sets whose calibration was measured, in the order of the table; the worst real csid set as ``max``."""
    measured = list(dict.fromkeys(name for _, name in study.calibration(metric)))
    first = [each.name for each in study.sanity.sets if each.role == "id_test"]
    return [n for n in dict.fromkeys((*first, *study.sanity.shifted(), WORST, *measured)) if n in measured]


def _table(
    study: GeneratedStudy, metric: str, labels: Sequence[str], sets: Iterable[str], rows: Sequence[Row]
) -> Table:
    notes = [
        f"In percent, with 95 % intervals. Bold: best of its column. {CLOSE}: its interval overlaps that of the best."
    ]
    if study.circular:
        notes.append(f"{CIRCULAR}: the network had a part in making the generated images.")
    if any(number is not None and number.exposure for row in rows for number in row.numbers):
        notes.append(f"{EXPOSED}: the network has met images of this value before.")
    if metric in METRICS:
        title = f"{heading(metric)} on generated and real sets"
    else:
        title = f"{metric} {'↑' if metric == 'accuracy' else '↓'} of the classifier"
    return Table(
        metric,
        title,
        columns("network", "made the images", *labels),
        tuple(_column(study, name) for name in sets),
        tuple(rows),
        tuple(notes),
    )


def _column(study: GeneratedStudy, name: str) -> Column:
    if name == WORST:
        return Column(REAL, "worst", WORST, "worst real csid")
    test = [each.name for each in study.sanity.sets if each.role == "id_test"]
    group = GENERATED if name in study.sanity.generated else "ID" if name in test else REAL
    return Column(group, name, name, name)


def _network(study: GeneratedStudy, name: str) -> tuple[Entry, Entry]:
    made = name in study.circular
    return Entry(name), Entry(CIRCULAR if made else "", made)


def _cells(rows: Sequence[Sequence[Measurement | None]], metric: str) -> list[tuple[Number | None, ...]]:
    higher = METRICS[metric].higher_is_better if metric in METRICS else metric == "accuracy"
    return list(zip(*(marked([_number(row) for row in column], higher) for column in zip(*rows))))


def _number(row: Measurement | None) -> Number | None:
    return None if row is None else Number(row.value, row.low, row.high, exposure=row.exposure)
