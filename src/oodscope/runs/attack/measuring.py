"""From the scores of an attack to its headline numbers: AUROC and MinRank, clean and under each variation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.metrics.interval import Interval, t_interval
from oodscope.metrics.ranking.minrank import (
    OutlierRanks,
    mean_ranks,
    min_rank_interval,
    outlier_ranks,
    source_interval,
    standard_error,
)
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.ranking import LEVEL
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import ANY, BUDGET, CLEAN, PROTOCOL, SEARCH, TRANSFER, unit_of_search
from oodscope.runs.attack.trace import AttackTrace
from oodscope.runs.attack.validity import Validity, truncation_curve


def measure(scores: ScoreTable) -> Measurements:
    """AUROC and MinRank of every detector on the source images, under each variation, and under the worst of them.

    A pure function of the stored scores. Intervals are over source images; those of a MinRank that is a mean over
    several runs, over runs.
    """
    return Measurements(row for detector in scores.detectors for row in _rows(scores, detector))


def ends(interval: Interval) -> dict[str, Any]:
    """An interval as the fields of a measurement."""
    return {"low": interval.low, "high": interval.high, "interval": interval.method, "level": interval.level}


def _rows(scores: ScoreTable, detector: str) -> Iterator[Measurement]:
    about = scores.context.extra["attack"]
    id_test = scores.scores(detector, role="id_test")
    shared = {**scores.context.row(detector), "protocol": PROTOCOL}
    for group, searches in _outliers(scores, detector).items():
        repeats = [outlier_ranks(id_test, outliers) for outliers in searches]
        ranks = mean_ranks(repeats)
        place = {"set": about["outliers"], "group": group, "n_id": ranks.n_id, "n_ood": len(ranks.mid)}
        interval = source_interval(ranks, LEVEL, seed=shared["seed"], ood_set=about["outliers"])
        yield Measurement(**shared, **place, metric="auroc", value=ranks.auroc, **ends(interval))
        if len(repeats) > 1:
            spread = float(np.std([each.auroc for each in repeats], ddof=1))
            yield Measurement(**shared, **place, metric="auroc_search_sd", value=spread)
        for metric, value, spread_of in _min_rank(repeats, about["runs"]):
            noise = {} if spread_of is None else ends(spread_of)
            yield Measurement(**shared, **place, metric=metric, value=value, **noise)


def _min_rank(repeats: Sequence[OutlierRanks], runs: int) -> Iterator[tuple[str, float, Interval | None]]:
    """Of each run, averaged over searches with other seeds."""
    smallest = np.mean([each.min_ranks(runs) for each in repeats], axis=0).astype(np.float64)
    mean, n_id = float(smallest.mean()), repeats[0].n_id
    interval = min_rank_interval(repeats[0], LEVEL) if runs == 1 else t_interval(smallest, LEVEL)
    interval = Interval(max(0.0, interval.low), min(n_id, interval.high), interval.level, interval.method)
    yield "min_rank", mean, interval
    yield "min_rank_share", mean / n_id, Interval(interval.low / n_id, interval.high / n_id, LEVEL, interval.method)
    if runs > 1:
        yield "min_rank_se", standard_error(smallest), None


def _outliers(scores: ScoreTable, detector: str) -> dict[str, list[FloatArray]]:
    """The outliers of each group: as they are, after each search, and the worst of all variations of each image.

    One array for each search seed.
    """
    about = scores.context.extra["attack"]
    own = (scores.frame["set"] == about["outliers"]).to_numpy()
    unit, values = scores.frame["unit"].to_numpy(), scores.frame[detector].to_numpy()
    seeds = range(about.get("search_seeds", 1))
    scores_by_group = {CLEAN: [values[own & (unit == CLEAN)]]}
    for name in about["variations"]:
        scores_by_group[name] = [values[own & (unit == unit_of_search(name, number))] for number in seeds]
    if len(about["conditional"]) > 1:
        scores_by_group[ANY] = [
            np.min([scores_by_group[name][number] for name in about["conditional"]], axis=0) for number in seeds
        ]
    return scores_by_group


def budget_rows(scores: ScoreTable, traces: Sequence[AttackTrace]) -> Measurements:
    """AUROC and lowest score that a search had reached after so many evaluations, as the search itself saw them."""
    rows = []
    for trace in traces:
        id_test = trace.attacked.id_test
        for name, result in trace.results.items():
            for budget, lowest in zip(result.budgets, np.asarray(result.at_budget, dtype=np.float64)):
                ranks = outlier_ranks(id_test, lowest)
                place: dict[str, Any] = {"set": str(budget), "group": name, "n_id": ranks.n_id, "n_ood": len(lowest)}
                place |= _shared(scores, trace, BUDGET)
                least = float(trace.attacked.standardised(lowest).min())
                rows.append(Measurement(**place, metric="auroc", value=ranks.auroc))
                rows.append(Measurement(**place, metric="lowest_score", value=least))
    return Measurements(rows)


def search_rows(scores: ScoreTable, traces: Sequence[AttackTrace]) -> Measurements:
    """How far each search is from its end, acceptance, what gradients add, and how many reasons speak against it."""
    rows = []
    for trace in traces:
        for name, diagnosis in trace.diagnoses.items():
            place = {
                "set": scores.context.extra["attack"]["outliers"],
                "group": name,
                "n_ood": len(trace.results[name]),
            }
            values = {
                "acceptance": diagnosis.acceptance,
                "last_gain": diagnosis.last_gain,
                "white_box_gain": diagnosis.white_box_gain,
                "unreliable": float(len(diagnosis.flags)),
            }
            shared = _shared(scores, trace, SEARCH)
            if (ahead := diagnosis.convergence) is not None:
                rows += [
                    Measurement(**shared, **place, metric="auroc_fall", value=ahead.fall, **ends(ahead.fall_interval)),
                    Measurement(
                        **shared, **place, metric="auroc_8x", value=ahead.eightfold, **ends(ahead.eightfold_interval)
                    ),
                ]
            rows += [
                Measurement(**shared, **place, metric=metric, value=value)
                for metric, value in values.items()
                if value is not None
            ]
    return Measurements(rows)


def transfer_rows(
    scores: ScoreTable, traces: Sequence[AttackTrace], name: str, judged: Mapping[tuple[str, str], FloatArray]
) -> Iterator[Measurement]:
    """AUROC of every detector on what one variation found against every detector."""
    for trace in traces:
        for (judge, against), outliers in judged.items():
            if judge == trace.attacked.name:
                ranks = outlier_ranks(trace.attacked.id_test, outliers)
                interval = source_interval(ranks, LEVEL, seed=scores.context.seed or 0, ood_set=against)
                place: dict[str, Any] = {"set": against, "group": name, "n_id": ranks.n_id, "n_ood": len(outliers)}
                shared = _shared(scores, trace, TRANSFER)
                yield Measurement(**shared, **place, metric="auroc", value=ranks.auroc, **ends(interval))


PLAIN = "plain draws, truncation"
"""Begins the name of a set of a generator's draws that no search has touched."""


def validity_rows(
    scores: ScoreTable,
    traces: Sequence[AttackTrace],
    variations: Mapping[str, Variation],
    validity: Validity,
    sources: Tensor,
) -> Iterator[Measurement]:
    """The share of found images that a judge of the source classes accepts; a generator's plain draws beside them."""
    outliers = scores.context.extra["attack"]["outliers"]
    for trace in traces:
        shared = _shared(scores, trace, SEARCH)
        for name, variation in variations.items():
            share = validity.of_search(trace.results[name], variation, sources)
            place: dict[str, Any] = {
                "set": outliers,
                "group": name,
                "n_ood": share.n,
                "metric": "valid_share",
                "value": share.value,
            }
            yield Measurement(**shared, **place, **ends(share.interval))
            if isinstance(variation, GanVariation):
                for truncation, plain in truncation_curve(variation, validity, seed=scores.context.seed or 0).items():
                    drawn: dict[str, Any] = {
                        "set": f"{PLAIN} {truncation:g}",
                        "group": name,
                        "n_ood": plain.n,
                    }
                    found: dict[str, Any] = {"metric": "valid_share", "value": plain.value, **ends(plain.interval)}
                    yield Measurement(**shared, **drawn, **found)


def judge_notes(validity: Validity, rows: Iterable[Measurement]) -> Iterator[str]:
    """What a judge knows, what it accepts of the found images, and of a generator's plain draws by truncation."""
    if validity.doubt is not None:
        yield validity.doubt
        return
    if (known := validity.recognised) is not None:
        yield f"the judge recognises {100 * known.value:.1f} % of {known.n:,} source images"
    found: dict[str, dict[str, Measurement]] = {}
    for row in rows:
        if row.metric == "valid_share":
            plain = PLAIN in row.set
            # what no search has touched does not depend on the detector
            words = row.set if plain else f"{row.detector} under {row.group}"
            found.setdefault(row.group if plain else "found images", {})[words] = row
    for about, shares in found.items():
        told = (f"{words} {100 * row.value:.1f} % [{_ends(row)}]" for words, row in shares.items())
        yield f"accepted by the judge, {about}: {'; '.join(told)}"


def _ends(row: Measurement) -> str:
    low, high = (np.nan if end is None else 100 * end for end in (row.low, row.high))
    return f"{low:.1f}–{high:.1f}"


def _shared(scores: ScoreTable, trace: AttackTrace, protocol: str) -> dict[str, Any]:
    return {**scores.context.row(trace.attacked.name), "protocol": protocol}
