"""What an evaluation says for and against detectors: its trials, and their weaknesses."""

from collections.abc import Callable, Iterator
from typing import cast

from oodscope.document.chapter import anchor_of
from oodscope.document.table import Table
from oodscope.document.trial import Entry, Trial, make_trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.document.wording import higher_is_better, label
from oodscope.metrics.metric import MEAN, Tuning
from oodscope.protocols.registry import headline_metrics, protocol_of
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result


def trials_of(result: Result, other: str = "") -> list[Trial]:
    """One trial for each protocol: its headline metric, over the group that leads its table.

    Parameters
    ----------
    other : a metric in place of the headline; protocols that did not measure it are left out.
    """
    where = f"{result.record.benchmark}, {result.record.model}"
    trials = []
    for protocol in result.tables():
        metric = other or headline_metrics(protocol, result.measurements)[0]
        if not result.measurements.filter(protocol=protocol, metric=metric):
            continue
        table = result.table(protocol, metric)
        entries = [
            Entry(row.name, cast(Tuning, row.section), value)
            for row in table.rows
            if (value := row.numbers[0]) is not None and not value.doubts
        ]
        if entries:
            higher, model = higher_is_better(metric), result.record.model_fingerprint
            trials.append(make_trial(protocol, where, _what(table, metric), entries, higher=higher, model=model))
    return trials


def _what(table: Table, metric: str) -> str:
    column = table.columns[0]
    if column.group in ("near", "far"):
        return f"{column.group}-OOD {label(metric)}"
    return f"{label(metric)}, mean of {column.group.replace('_', '-')} sets"


def weaknesses_of(result: Result, subject: Subject) -> list[Weakness]:
    """The worst set of a detector under any protocol that ranks sets, and its worst error rate."""
    if not subject.fits(result.record.model_fingerprint):
        return []
    return [*_worst_set(result, subject), *_worst_error(result, subject)]


def _worst_set(result: Result, subject: Subject) -> Iterator[Weakness]:
    rows = _rows(result, subject, lambda protocol: headline_metrics(protocol)[0] == "auroc")
    if row := min(rows, key=lambda row: row.value, default=None):
        words, anchor = f"{row.set}, AUROC", anchor_of(row.protocol)
        yield Weakness("worst set", words, row.value, f"({row.protocol.replace('_', ' ')})", anchor, -row.value)


def _worst_error(result: Result, subject: Subject) -> Iterator[Weakness]:
    rows = _rows(result, subject, lambda protocol: not higher_is_better(headline_metrics(protocol)[0]))
    if row := max(rows, key=lambda row: row.value, default=None):
        words, anchor = f"{row.set}, {label(row.metric)}", anchor_of(row.protocol)
        yield Weakness("worst error", words, row.value, "", anchor, row.value)


def _rows(result: Result, subject: Subject, wanted: Callable[[str], bool]) -> list[Measurement]:
    """The headline rows of one detector on single sets."""
    return [
        row
        for protocol in result.record.protocols
        if wanted(protocol)
        for row in result.measurements.filter(
            protocol=protocol, metric=headline_metrics(protocol, result.measurements)[0]
        )
        if (row.detector, row.tuning) == (subject.detector, subject.tuning)
        and row.set != MEAN
        and not row.unranked
        and row.group not in protocol_of(protocol).unranked
    ]
