"""DER and its parts at thresholds taken from training or validation images."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import KEEPS, SOURCES
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.rejection.rejection import Decisions, Rejection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.protocols.estimates import LEVEL, REPLICATES, Estimate, estimate_rows
from oodscope.protocols.human_options import Prices
from oodscope.protocols.labelled_sets import LabelledSet, rows_of
from oodscope.results.measurement import Measurement
from oodscope.results.scoretable import ScoreTable


def rejection_rows(
    scores: ScoreTable, detector: str, sets: Sequence[LabelledSet], shared: Mapping[str, Any], prices: Prices | None
) -> Iterator[Measurement]:
    """Every rate at every threshold. Intervals count the noise of the threshold too: its sample is resampled."""
    seed = int(shared["seed"] or 0)
    column = scores.scores(detector)
    labelled = {each.name: Rejection(column[each.rows], each.correct) for each in sets}
    for source in SOURCES:
        sample = ThresholdSample(column[_source_rows(scores, source)], f"{detector}, {source}")
        for keep in KEEPS:
            replicates = sample.replicates(keep / 100, seed=seed, count=REPLICATES)
            yield from _threshold_rows(shared, sample, replicates, keep, source)
            gamma = sample.threshold(keep / 100).value
            points = {name: each.at(gamma) for name, each in labelled.items()}
            drawn = {name: each.at(replicates).resampled(_rng(seed, name)) for name, each in labelled.items()}
            for kind in ("der", "frr", "far", *(["cost"] if prices else [])):
                estimates = {
                    each.name: _estimate(
                        each, _rate(points[each.name], kind, prices), _rate(drawn[each.name], kind, prices)
                    )
                    for each in sets
                }
                yield from estimate_rows(shared, f"{kind}{keep}_{source}", sets, estimates)


def baseline_rows(sets: Sequence[LabelledSet], shared: Mapping[str, Any]) -> Iterator[Measurement]:
    """The DER of accepting all and of rejecting all images: what a detector must beat to be worth having."""
    seed = int(shared["seed"] or 0)
    for name, gamma in (("der_accept_all", np.inf), ("der_reject_all", -np.inf)):
        estimates = {}
        for each in sets:
            rejection = Rejection(np.zeros(len(each)), each.correct)
            point = rejection.at(gamma)
            mistakes = int(point.rejected_correct + point.kept_wrong)
            drawn = rejection.at(np.full(REPLICATES, gamma)).resampled(_rng(seed, each.name))
            wilson = wilson_interval(mistakes, len(each), LEVEL)
            estimates[each.name] = _estimate(each, point.der, drawn.der, wilson)
        yield from estimate_rows(shared, name, sets, estimates)


def _threshold_rows(
    shared: Mapping[str, Any], sample: ThresholdSample, replicates: NDArray[np.float64], keep: int, source: str
) -> Iterator[Measurement]:
    found = sample.threshold(keep / 100)
    interval = percentile_interval(replicates, LEVEL)
    told = {**shared, "group": "threshold", "set": f"id_{source.split('_')[0]}", "n_id": found.n}
    yield Measurement(
        **told,
        metric=f"threshold{keep}_{source}",
        value=found.value,
        low=interval.low,
        high=interval.high,
        interval=interval.method,
        level=interval.level,
    )
    yield Measurement(**told, metric=f"tied{keep}_{source}", value=found.tied)


def _source_rows(scores: ScoreTable, source: str) -> NDArray[np.int64]:
    part, kind = source.split("_")
    role = f"id_{part}"
    rows = rows_of(scores, role)
    if not len(rows):
        raise DataError(f"human_centric needs scores of {role}, which set the threshold {source}; the table has none")
    if kind == "all":
        return rows
    correct = rows[scores.correct()[rows]]
    if not len(correct):
        raise DataError(
            f"none of the {len(rows)} images of {role} is classified correctly, so there is no threshold {source}; "
            "check that the labels and the classifier belong together"
        )
    return correct


def _rate(decisions: Decisions, kind: str, prices: Prices | None) -> NDArray[np.float64]:
    if kind == "cost" and prices is not None:
        return decisions.cost(prices.false_rejection, prices.false_acceptance)
    rates: NDArray[np.float64] = getattr(decisions, kind)
    return rates


def _estimate(each: LabelledSet, value: Any, replicates: NDArray[np.float64], interval: Any = None) -> Estimate:
    n_id, n_ood = (0, len(each)) if each.foreign else (len(each), 0)
    return Estimate(float(value), replicates, n_id, n_ood, interval)


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, *name.encode())))
