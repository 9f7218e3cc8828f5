"""DER and its parts at thresholds taken from training or validation images."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import KEEPS, SOURCES
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import least_count
from oodscope.metrics.rejection.rate_intervals import FEW, class_noise, image_noise, order_statistics_interval
from oodscope.metrics.rejection.rejection import Decisions, Rejection
from oodscope.metrics.rejection.selective import SELECTIVE, Selection, draw_counts
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.metrics.resampling.draws import resamples
from oodscope.protocols.human_centric.sets import LEVEL, REPLICATES, Estimate, LabelledSet, estimate_rows, rows_of
from oodscope.results.measurement import Measurement
from oodscope.results.scoretable import ScoreTable

Prices = Mapping[str, float]
"""What a ``false_rejection`` and a ``false_acceptance`` cost."""


def selective_estimates(
    scores: ScoreTable, sets: Sequence[LabelledSet], seed: int, replicates: int
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """By detector, metric and set. The population of an OOD set is ``id_test`` and the set: alone it would hold
    failures only, and there would be nothing to order. The population of any other set is the set itself.

    Each set's draws are made once for all detectors; ``id_test`` keeps one draw for all the populations it is part of.
    """
    (known,) = (each for each in sets if each.role == "id_test")
    known_counts = draw_counts(resamples(len(known), seed=seed), len(known), replicates)
    found: dict[str, dict[str, dict[str, Estimate]]] = {
        detector: {metric: {} for metric in SELECTIVE} for detector in scores.detectors
    }
    for each in sets:
        parts = [known, each] if each.is_ood else [each]
        counts = np.hstack([_counts(part, known, known_counts, seed, replicates) for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        correct = np.concatenate([part.correct for part in parts])
        n_ood = len(each) if each.is_ood else 0
        for detector in scores.detectors:
            selection = Selection(scores.scores(detector)[rows], correct)
            points, drawn = selection.points(), selection.replicates(counts)
            for metric in SELECTIVE:
                found[detector][metric][each.name] = Estimate(points[metric], drawn[metric], len(rows) - n_ood, n_ood)
    return found


def _counts(
    part: LabelledSet, known: LabelledSet, known_counts: NDArray[np.uint8], seed: int, replicates: int
) -> NDArray[np.uint8]:
    if part is known:
        return known_counts
    return draw_counts(resamples(len(part), seed=seed, ood_set=part.name), len(part), replicates)


TPR = 0.95


def conventional_rows(
    scores: ScoreTable, detector: str, sets: Sequence[LabelledSet], shared: Mapping[str, Any]
) -> Iterator[Measurement]:
    """AUROC and FPR95 against each OOD set, twice.

    With all of ``id_test`` as ID, a detector is blamed for distrusting what the classifier gets wrong; with its correct
    images only, it is not. The order of two detectors may turn between the two (Fig. 2 of the paper).
    """
    (known,) = (each for each in sets if each.role == "id_test")
    column = scores.scores(detector)
    for suffix, rows in (("", known.rows), ("_correct_id", known.rows[known.correct])):
        rankings = {each.name: Ranking(column[rows], column[each.rows]) for each in sets if each.is_ood and len(rows)}
        if not rankings:
            continue
        separated = {
            name: Estimate(each.auroc, np.empty(0), each.n_id, each.n_ood, auroc_interval(each, LEVEL))
            for name, each in rankings.items()
        }
        yield from estimate_rows(
            shared, f"auroc{suffix}", sets, separated, mean_auroc_interval(list(rankings.values()), LEVEL)
        )
        operating = _operating_points(np.sort(column[rows]), int(shared["seed"] or 0))
        kept = {
            each.name: Estimate(
                rankings[each.name].fpr_at_tpr(TPR, positive="id"),
                _kept(np.sort(column[each.rows]), operating, int(shared["seed"] or 0), each.name),
                len(rows),
                len(each),
            )
            for each in sets
            if each.name in rankings
        }
        yield from estimate_rows(shared, f"fpr95_id_positive{suffix}", sets, kept)


def _operating_points(ascending: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The score up to which a bootstrap resample of ID keeps 95 % of itself: its j-th smallest score.

    The j-th smallest of n draws with replacement is that of row ``n U``, U the j-th smallest of n uniform numbers,
    which is Beta(j, n - j + 1): no resample has to be drawn.
    """
    n = len(ascending)
    j = least_count(TPR, n)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))
    rows = (n * rng.beta(j, n - j + 1, size=REPLICATES)).astype(np.intp)
    return ascending[np.minimum(rows, n - 1)]


def _kept(ascending: NDArray[np.float64], operating: NDArray[np.float64], seed: int, name: str) -> NDArray[np.float64]:
    """The share of a resampled OOD set that is kept at each operating point."""
    shares = np.searchsorted(ascending, operating, side="right") / len(ascending)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(6, *name.encode())))
    return np.asarray(rng.binomial(len(ascending), shares) / len(ascending))


def rejection_rows(
    scores: ScoreTable, detector: str, sets: Sequence[LabelledSet], shared: Mapping[str, Any], prices: Prices | None
) -> Iterator[Measurement]:
    """Every rate at every threshold. Intervals count the noise of the threshold too: its sample is resampled."""
    seed = int(shared["seed"] or 0)
    column = scores.scores(detector)
    labelled = {each.name: Rejection(column[each.rows], each.correct) for each in sets}
    learned = scores.context.detectors[detector].learned_from or {}
    (known,) = (each for each in sets if each.role == "id_test")
    for source in sources_of(scores):
        sample = ThresholdSample(column[_source_rows(scores, source)], f"{detector}, {source}")
        # a detector finds images that it was fitted on more familiar than new ones
        fitted = "id_val" in learned and source.startswith("val")
        shown = {**shared, "unranked": "fitted on the images of its threshold" if fitted else ""}
        for keep in KEEPS:
            cut = _Cut(sample, keep / 100, seed)
            yield from _threshold_rows(shown, sample, cut.replicates, keep, source)
            frr = float(labelled[known.name].at(cut.gamma).frr)
            carried = {**shown, "rejected_correct": frr}
            drawn = {name: each.at(cut.replicates).resampled(_rng(seed, name)) for name, each in labelled.items()}
            for kind in ("der", "frr", "far", *(["cost"] if prices else [])):
                estimates = {
                    each.name: _at_threshold(each, labelled[each.name], column, cut, kind, drawn[each.name], prices)
                    for each in sets
                }
                yield from estimate_rows(carried, f"{kind}{keep}_{source}", sets, estimates)


class _Cut:
    """A threshold, and those of other samples that it could have come from."""

    def __init__(self, sample: ThresholdSample, keep: float, seed: int) -> None:
        self.sample, self.keep = sample, keep
        self.gamma = sample.threshold(keep).value
        self.replicates = sample.replicates(keep, seed=seed, count=REPLICATES)
        self.few = sample.beyond(keep) < FEW


def _at_threshold(
    each: LabelledSet,
    rejection: Rejection,
    column: NDArray[np.float64],
    cut: _Cut,
    kind: str,
    drawn: Decisions,
    prices: Prices | None,
) -> Estimate:
    """A rate of one set, with the interval that its threshold sample allows and, for DER, its noise over classes."""
    interval, noise = None, None
    if cut.few and kind != "cost":
        interval = order_statistics_interval(rejection, cut.sample, cut.keep, kind, LEVEL)  # type: ignore[arg-type]
    if kind == "der":
        mistaken = (column[each.rows] >= cut.gamma) == each.correct
        parts = class_noise(mistaken, each.classes) if each.is_ood and each.classes.size else None
        parts = image_noise(mistaken) if not each.is_ood else parts
        noise = None if parts is None else (parts, rejection.at(cut.replicates).der)
    n_id, n_ood = (0, len(each)) if each.is_ood else (len(each), 0)
    value = float(_rate(rejection.at(cut.gamma), kind, prices))
    return Estimate(value, _rate(drawn, kind, prices), n_id, n_ood, interval, noise)


def sources_of(scores: ScoreTable) -> list[str]:
    """The sources of thresholds whose images the table has."""
    sources = [source for source in SOURCES if scores.sets(f"id_{source.split('_')[0]}")]
    if not sources:
        raise DataError(
            "human_centric needs scores of id_train or id_val, which set its thresholds; the table has none"
        )
    return sources


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
    place = {**shared, "group": "threshold", "set": f"id_{source.split('_')[0]}", "n_id": found.n}
    yield Measurement(
        **place,
        metric=f"threshold{keep}_{source}",
        value=found.value,
        low=interval.low,
        high=interval.high,
        interval=interval.method,
        level=interval.level,
    )
    yield Measurement(**place, metric=f"tied{keep}_{source}", value=found.tied)


def _source_rows(scores: ScoreTable, source: str) -> NDArray[np.int64]:
    part, kind = source.split("_")
    role = f"id_{part}"
    rows = rows_of(scores, role)
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
        return decisions.cost(**prices)
    rates: NDArray[np.float64] = getattr(decisions, kind)
    return rates


def _estimate(each: LabelledSet, value: Any, replicates: NDArray[np.float64], interval: Any = None) -> Estimate:
    n_id, n_ood = (0, len(each)) if each.is_ood else (len(each), 0)
    return Estimate(float(value), replicates, n_id, n_ood, interval)


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, *name.encode())))
