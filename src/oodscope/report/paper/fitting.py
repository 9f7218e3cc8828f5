"""What a figure asks of the runs that it was given; a run that does not fit is an error that says what is missing."""

from collections.abc import Sequence

from oodscope.base.errors import DataError
from oodscope.metrics.metric import MEAN
from oodscope.results.measurement import Measurement
from oodscope.results.opening import of_kind
from oodscope.results.run import Run
from oodscope.runs.evaluation.run import Result


def results_with(runs: Sequence[Run], *protocols: str, at_least: int = 1) -> tuple[Result, ...]:
    """The evaluations, all measured under these protocols and on one benchmark."""
    results = of_kind(runs, Result)
    for result in results:
        for protocol in protocols:
            if protocol not in result.record.protocols:
                measured = ", ".join(result.record.protocols)
                raise DataError(f"run {result.record.id} was measured under {measured}, not under {protocol}")
    if len(results) < at_least:
        given = f"{len(results)} evaluation{'s' * (len(results) != 1)}"
        raise DataError(f"{given} given, at least {at_least} needed")
    one_benchmark(results)
    return results


def only_result(runs: Sequence[Run], *protocols: str) -> Result:
    """The one evaluation, measured under these protocols."""
    found = results_with(runs, *protocols)
    if len(found) > 1:
        raise DataError(f"{len(found)} evaluations given, one needed: {', '.join(each.record.id for each in found)}")
    return found[0]


def one_benchmark(results: Sequence[Result]) -> None:
    """Refuse numbers that do not belong on one axis: those of different benchmarks, or versions of one."""
    named = dict.fromkeys(f"{each.record.benchmark} {each.record.benchmark_version}" for each in results)
    if len(named) > 1:
        raise DataError(f"runs of different benchmarks cannot share a figure: {', '.join(named)}")


def group_means(result: Result, protocol: str, group: str, metric: str = "auroc") -> dict[str, Measurement]:
    """The mean of a metric over a group of sets, by detector; how a detector was tuned is part of its name."""
    rows = result.measurements.filter(protocol=protocol, group=group, set=MEAN, metric=metric)
    if not rows:
        raise DataError(f"run {result.record.id} has no {group} sets under {protocol}, so no mean {metric} over them")
    tracks = rows.distinct("tuning")
    return {f"{row.detector} ({row.tuning})" if len(tracks) > 1 else row.detector: row for row in rows}
