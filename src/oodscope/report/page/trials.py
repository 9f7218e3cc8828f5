"""Which trials there are in runs of every kind, and the number that each is about."""

from collections.abc import Iterator
from typing import cast

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.number import Number
from oodscope.document.table import Table
from oodscope.document.trial import APART, BY_VALUE, NEMENYI, PAIRED, Entry, Trial, in_order
from oodscope.document.wording import higher_is_better, label
from oodscope.metrics.comparison.many_sets import critical_difference
from oodscope.metrics.crossval.class_groups import class_group_intervals
from oodscope.metrics.metric import Tuning
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurement
from oodscope.runs.attack import run as attacks
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import MetricStudy, study_metric
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated import run as generated_studies
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.opened import CROSS_VALIDATION, OpenedRuns

CROSSVAL_METRIC = "auroc"
"""By which the page ranks detectors across folds."""


def trials(runs: OpenedRuns) -> list[Trial]:
    """Every trial, protocol by protocol."""
    found = [trial for number, result in enumerate(runs.results, 1) for trial in of_result(result, number)]
    found += [trial for number, table in enumerate(runs.crossvals, 1) for trial in of_crossval(table, number)]
    found += [of_attack(attack, number) for number, attack in enumerate(runs.attacks, 1)]
    found += [trial for number, study in enumerate(runs.generated, 1) for trial in of_generated(study, number)]
    order = runs.protocols()
    return sorted(found, key=lambda trial: order.index(trial.protocol))


def section(protocol: str, run: int) -> str:
    """The id of the section about one protocol of the run with this number among its kind."""
    letters = "".join(each if each.isalnum() and each.isascii() else "-" for each in protocol)
    return f"{letters}-{run}"


def of_result(result: Result, number: int) -> Iterator[Trial]:
    """One trial for each protocol: its headline metric, over the group that leads its table."""
    where = f"{result.record.benchmark}, {result.record.model}"
    for protocol in result.record.protocols:
        metric = headline_metrics(protocol)[0]
        if result.measurements.filter(protocol=protocol, metric=metric):
            table = result.table(protocol, metric)
            entries = [
                Entry(row.name, cast(Tuning, row.section), value)
                for row in table.rows
                if (value := row.numbers[0]) is not None
            ]
            if entries:
                yield _trial(
                    *(protocol, where, _what(table, metric), entries, higher_is_better(metric)),
                    section(protocol, number),
                    model=result.record.model_fingerprint,
                )


def of_attack(attack: Attack, number: int) -> Trial:
    """What is left under the worst of all variations; of a single variation, under it."""
    rows = attack.result.measurements.filter(protocol=attacks.PROTOCOL, metric="auroc")
    group = worst_group(rows.distinct("group"))
    about = attack.result.scores.context.extra["attack"]
    words = "any variation" if group == attacks.ANY else group
    entries = [
        Entry(row.detector, row.tuning, _cell(row), _doubt(attack, row.detector, group))
        for row in rows.filter(group=group)
    ]
    where = f"{about['outliers']}, {attack.result.record.model}"
    return _trial(
        *(attacks.PROTOCOL, where, f"AUROC under {words}", entries, True, section(attacks.PROTOCOL, number)),
        model=attack.result.record.model_fingerprint,
    )


def _doubt(attack: Attack, detector: str, group: str) -> str:
    own = [each for each in attack.searches if each.detector == detector and group in (each.variation, attacks.ANY)]
    return "; ".join(f"{each.variation}: {flag}" for each in own for flag in each.flags)


def worst_group(groups: list[str]) -> str:
    """The group that stands for an attack: the worst of all variations, or the only one."""
    return attacks.ANY if attacks.ANY in groups else groups[-1]


def of_crossval(table: CrossValidationTable, number: int) -> Iterator[Trial]:
    """The mean over all cells, with the interval for other OOD classes where folds were made."""
    study = finished_study(table)
    if study is None:
        return
    values = study.repetitions.mean(axis=0) if study.has_folds else study.truth
    ends = _ends(study)
    ranks = _nemenyi(values) if study.testable and len(study.detectors) > 2 else [None] * len(values)
    entries = [
        Entry(name, "default", Number(float(values[row].mean()), *ends[row], rank=ranks[row]))
        for row, name in enumerate(study.detectors)
    ]
    where = f"{len(study.cells)} cells, {'folds' if study.has_folds else 'hold-outs'}"
    yield _trial(
        CROSS_VALIDATION, where, "mean AUROC", entries, True, section(CROSS_VALIDATION, number), measured=NEMENYI
    )


def finished_study(table: CrossValidationTable) -> MetricStudy | None:
    """The study of the metric that ranks; None where it was not measured or no repetition is complete yet."""
    if CROSSVAL_METRIC not in table.metrics:
        return None
    try:
        return study_metric(table, CROSSVAL_METRIC)
    except DataError:
        return None


def _ends(study: MetricStudy) -> list[tuple[float | None, float | None]]:
    if not study.has_folds:
        return [(None, None)] * len(study.detectors)
    low, high = class_group_intervals(study.folds.mean(axis=3))
    return [(float(a), float(b)) for a, b in zip(low, high)]


def _nemenyi(values: np.ndarray) -> list[tuple[int, int] | None]:
    """Best and worst place that average ranks, a critical difference apart or not, allow."""
    found = critical_difference(values)
    ranks = np.array(found.average_ranks)
    better = (ranks[None, :] <= ranks[:, None] - found.difference).sum(axis=1)
    worse = (ranks[None, :] >= ranks[:, None] + found.difference).sum(axis=1)
    return [(1 + int(above), len(ranks) - int(below)) for above, below in zip(better, worse)]


def of_generated(study: GeneratedStudy, number: int) -> Iterator[Trial]:
    """One trial for each network and generated set of foreign images."""
    found = study.separation("auroc")
    for network in study.networks:
        for name in study.sanity.near():
            rows = [row for (model, _, of), row in found.items() if (model, of) == (network, name)]
            entries = [Entry(row.detector, row.tuning, _cell(row)) for row in rows]
            if entries:
                where = f"{study.results[0].record.benchmark}, {network}"
                yield _trial(
                    *(generated_studies.PROTOCOL, where, f"AUROC on {name}", entries, True),
                    section(generated_studies.PROTOCOL, number),
                    model=study.result(network).record.model_fingerprint,
                )


def _trial(
    protocol: str,
    where: str,
    what: str,
    entries: list[Entry],
    higher: bool,
    anchor: str,
    *,
    measured: str = PAIRED,
    model: str = "",
) -> Trial:
    sure = all(entry.cell.interval for entry in entries)
    ranked = all(entry.cell.rank is not None for entry in entries)
    ranked_by = measured if ranked else APART if sure else BY_VALUE
    return Trial(protocol, where, what, "↑" if higher else "↓", in_order(entries, higher), ranked_by, anchor, model)


def _what(table: Table, metric: str) -> str:
    column = table.columns[0]
    if column.group in ("near", "far"):
        return f"{column.group}-OOD {label(metric)}"
    return f"{label(metric)}, mean of {column.group.replace('_', '-')} sets"


def _cell(row: Measurement) -> Number:
    return Number(row.value, row.low, row.high, exposure=row.exposure)
