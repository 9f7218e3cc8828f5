"""Paired comparisons of detectors: all pairs of one run, or the same detectors of two runs."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import pandas as pd

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.catalog import AUROC, METRICS
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import PairedTest, paired_bootstrap, paired_delong
from oodscope.metrics.metric import MEAN, Metric
from oodscope.protocols.ranking import resample
from oodscope.protocols.registry import PROTOCOLS, stored_protocol
from oodscope.protocols.separation import Separation, separate
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.comparison import Comparison, Comparisons
from oodscope.runs.evaluation.run import Result

Test = Callable[[str, str, Sequence[str]], PairedTest]
"""The test of two detectors on the mean over some sets."""


def compare(
    first: Result,
    second: Result | None = None,
    *,
    detectors: Sequence[str] | None = None,
    protocol: str | None = None,
    metric: str | None = None,
    level: float = 0.95,
) -> Comparisons:
    """Which detectors differ by more than noise, and what difference these images could show at all.

    With one result, every pair of its detectors; with two of the same benchmark and images (two models, two
    recipes), each detector of the first against the same one of the second. AUROC is tested by paired DeLong,
    every other metric by a paired bootstrap; p-values are corrected by Holm over the pairs of a column.

    Parameters
    ----------
    detectors : which; all (or all that both have) by default.
    protocol : whose negatives and groups count; the first one of the run that ranks, by default.
    metric : what is compared; the first headline metric of the protocol by default.

    Examples
    --------
    >>> row = oods.compare(result)[0]
    >>> (row.first, row.second, row.set, row.method)
    ('msp', 'knn', 'mean', 'delong-paired')
    """
    measure = None if metric is None else METRICS[metric]
    name = protocol or next((each for each in first.record.protocols if PROTOCOLS.get(each).negatives), "standard")
    ranking = stored_protocol(first.scores, name)
    if not ranking.negatives:
        raise DataError(f"protocol {name!r} does not rank images, so its numbers cannot be compared pair by pair")
    measure = measure or METRICS[ranking.headline[0]]
    if second is None:
        scores, chosen = first.scores, _chosen(detectors, first.scores.detectors)
        pairs = list(combinations(chosen, 2))
    else:
        scores, pairs = _joined(first, second, _chosen(detectors, _shared(first, second)))
    if not pairs:
        raise DataError("a comparison needs two detectors, or two runs")
    every = separate(scores, ranking.negatives, ranking.groups)
    separations = {each: found for each, found in every.items() if any(each in pair for pair in pairs)}
    if not separations[pairs[0][0]].groups:
        raise DataError("there is no near or far set to compare on")
    test = _test(separations, measure, first.scores.context.seed or 0, level)
    return Comparisons(_rows(separations, pairs, test, {"protocol": name, "metric": measure.name}))


def _rows(
    separations: Mapping[str, Separation], pairs: Sequence[tuple[str, str]], test: Test, shared: Mapping[str, str]
) -> list[Comparison]:
    rows = []
    any_one = next(iter(separations.values()))
    for group, names in any_one.groups.items():
        for column, sets in ((MEAN, names), *((name, [name]) for name in names)):
            tests = [test(a, b, sets) for a, b in pairs]
            for (a, b), found, p_holm in zip(pairs, tests, holm([found.p for found in tests])):
                rows.append(
                    Comparison(
                        **shared,
                        group=group,
                        set=column,
                        first=a,
                        second=b,
                        first_value=found.first,
                        second_value=found.second,
                        difference=found.difference,
                        low=found.low,
                        high=found.high,
                        level=found.level,
                        p=found.p,
                        p_holm=float(p_holm),
                        comparisons=len(pairs),
                        detectable=found.detectable,
                        method=found.method,
                        n_id=any_one.negative.size,
                        n_ood=sum(any_one.ood[name].size for name in sets),
                    )
                )
    return rows


def _test(separations: Mapping[str, Separation], metric: Metric, seed: int, level: float) -> Test:
    if metric.name == AUROC.name:
        return lambda a, b, sets: paired_delong(separations[a].placements(sets), separations[b].placements(sets), level)
    draws = resample(separations, [metric], seed=seed)
    return lambda a, b, sets: paired_bootstrap(draws[a], draws[b], metric.name, sets, level)


def _chosen(asked: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    for name in asked or ():
        if name not in known:
            raise UnknownNameError("detector", name, known, f"Scored here: {', '.join(known)}")
    return list(dict.fromkeys(asked or known))


def _shared(first: Result, second: Result) -> list[str]:
    shared = [name for name in first.scores.detectors if name in second.scores.detectors]
    if not shared:
        raise DataError(f"{first.record.id} and {second.record.id} have no detector in common")
    return shared


def _joined(first: Result, second: Result, detectors: Sequence[str]) -> tuple[ScoreTable, list[tuple[str, str]]]:
    """The scores of two runs side by side, image by image, and which columns to compare."""
    benchmarks = [f"{each.record.benchmark}@{each.record.benchmark_version}" for each in (first, second)]
    if benchmarks[0] != benchmarks[1]:
        raise DataError(f"the runs are of different benchmarks, {benchmarks[0]} and {benchmarks[1]}")
    key = ["set", "role", "unit", "sample_id"]
    mine, theirs = (each.scores.frame.astype(dict.fromkeys(key, str)).set_index(key) for each in (first, second))
    if missing := mine.index.symmetric_difference(theirs.index).tolist():
        name, _, _, sample = missing[0]
        raise DataError(
            f"a paired comparison needs the same images in both runs; {len(missing)} are in one only, such as "
            f"{sample} of {name}"
        )
    labels = [each.record.model for each in (first, second)]
    if labels[0] == labels[1]:
        labels = [each.record.id for each in (first, second)]
    if labels[0] == labels[1]:
        raise DataError(f"both are run {labels[0]}; to compare its detectors, give it once")
    pairs = [(f"{name} of {labels[0]}", f"{name} of {labels[1]}") for name in detectors]
    frame = mine[[column for column in mine.columns if column not in first.scores.detectors]].copy()
    other = theirs.reindex(mine.index)
    columns = {a: mine[name].to_numpy() for name, (a, _) in zip(detectors, pairs)}
    columns |= {b: other[name].to_numpy() for name, (_, b) in zip(detectors, pairs)}
    joined = pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1).reset_index()
    return ScoreTable(joined, {"detectors": {name: {} for name in columns}}), pairs
