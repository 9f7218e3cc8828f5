"""Training methods against each other, each with networks of several seeds: what holds for others of the recipes."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.influence import join_sets
from oodscope.metrics.comparison.networks import CANNOT_SAY, average_networks, beside, compared_trainings
from oodscope.metrics.metric import MEAN
from oodscope.protocols.statements import Statement
from oodscope.runs.comparison.compare import (
    aligned_with,
    comparison_rows,
    protocol_and_metric,
    shared_detectors,
    source_of,
)
from oodscope.runs.comparison.comparison import Comparison, Comparisons
from oodscope.runs.comparison.sources import Scored, Source
from oodscope.runs.evaluation.run import Result


def compare_trainings(
    trainings: Mapping[str, Sequence[Result]],
    *,
    detectors: Sequence[str] | None = None,
    protocol: str | None = None,
    metric: str | None = None,
    level: float = 0.95,
) -> Comparisons:
    """Every pair of training methods under each detector, for *other networks of these recipes*.

    Seeds of two methods are no pairs, and few seeds know their spread badly, so it is pooled over all methods
    (:func:`compared_trainings`). A method with one network says nothing of others of its recipe, and is refused.

    Parameters
    ----------
    trainings : by the name of the method its runs, one for each seed; all on the same images.
    detectors : which; all that every run has by default.
    """
    if len(trainings) < 2:
        raise DataError("a comparison of trainings needs two methods, each with the runs of its seeds")
    runs = [run for own in trainings.values() for run in own]
    if any(len(own) < 2 for own in trainings.values()):
        short = ", ".join(name for name, own in trainings.items() if len(own) < 2)
        raise DataError(f"{CANNOT_SAY} ({short})")
    if len({run.record.model_fingerprint for run in runs}) < len(runs):
        raise DataError("two of the runs are of one network; seeds are separately trained")
    first, name_and_metric = runs[0], protocol_and_metric(runs[0], protocol, metric)
    rows: list[Comparison] = []
    for detector in shared_detectors(runs, detectors):
        sources = {
            name: [source_of([Scored(name, aligned_with(first, run), detector)], *name_and_metric) for run in own]
            for name, own in trainings.items()
        }
        rows += _detector_rows(sources, detector, len(trainings), name_and_metric, level)
    return Comparisons(rows)


def _detector_rows(
    sources: Mapping[str, Sequence[Source]], detector: str, count: int, compared: tuple[str, str], level: float
) -> list[Comparison]:
    any_source = next(iter(sources.values()))[0]
    pairs = list(combinations(range(count), 2))
    labels = [f"{detector} of {name}" for name in sources]
    rows = []
    for group, members in any_source.groups.items():
        for column, names in ((MEAN, list(members)), *((each, [each]) for each in members)):
            units = [[[each.class_units()[name] for name in names] for each in own] for own in sources.values()]
            values = [np.array([float(join_sets(seed).values[0]) for seed in own]) for own in units]
            averaged = join_sets(beside([average_networks(own) for own in units]))
            found = compared_trainings(averaged, values)
            where: tuple[Statement, str, str, list[str]] = ("networks", group, column, names)
            fields = comparison_rows(any_source, labels, pairs, found, where, level, min(map(len, units)))
            rows += [Comparison(protocol=compared[0], metric=compared[1], **each) for each in fields]
    return rows
