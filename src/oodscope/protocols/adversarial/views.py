"""Rows beside the headline: curves over the budget, transfer between detectors, how the chains moved."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oodscope.metrics.ranking.minrank import outlier_ranks, source_interval
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.adversarial.course import Course
from oodscope.protocols.adversarial.measuring import ends
from oodscope.protocols.separation import LEVEL, detector_context, run_context
from oodscope.results.attack import BUDGET, SEARCH, TRANSFER
from oodscope.results.measurement import Measurement
from oodscope.results.measurements import Measurements
from oodscope.results.scoretable import ScoreTable


def budget_rows(scores: ScoreTable, courses: Sequence[Course]) -> Measurements:
    """AUROC and lowest score that a search had reached after so many evaluations, as the search itself saw them."""
    rows = []
    for course in courses:
        id_test = course.attacked.id_test
        for name, found in course.found.items():
            for budget, lowest in zip(found.budgets, np.asarray(found.at_budget, dtype=np.float64)):
                ranks = outlier_ranks(id_test, lowest)
                place: dict[str, Any] = {"set": str(budget), "group": name, "n_id": ranks.n_id, "n_ood": len(lowest)}
                place |= _shared(scores, course, BUDGET)
                least = float(course.attacked.standardised(lowest).min())
                rows.append(Measurement(**place, metric="auroc", value=ranks.auroc))
                rows.append(Measurement(**place, metric="lowest_score", value=least))
    return Measurements(rows)


def search_rows(scores: ScoreTable, courses: Sequence[Course]) -> Measurements:
    """Acceptance, when the chains last gained, what gradients add, and how many reasons speak against the search."""
    rows = []
    for course in courses:
        for name, diagnosis in course.diagnoses.items():
            place = {"set": scores.metadata["attack"]["outliers"], "group": name, "n_ood": len(course.found[name])}
            values = {
                "acceptance": diagnosis.acceptance,
                "last_gain": diagnosis.last_gain,
                "white_box_gain": diagnosis.white_box_gain,
                "unreliable": float(len(diagnosis.flags)),
            }
            shared = _shared(scores, course, SEARCH)
            rows += [
                Measurement(**shared, **place, metric=metric, value=value)
                for metric, value in values.items()
                if value is not None
            ]
    return Measurements(rows)


def transfer_rows(
    scores: ScoreTable, courses: Sequence[Course], name: str, judged: Mapping[tuple[str, str], FloatArray]
) -> Iterator[Measurement]:
    """AUROC of every detector on what one variation found against every detector."""
    for course in courses:
        for (judge, against), outliers in judged.items():
            if judge == course.attacked.name:
                ranks = outlier_ranks(course.attacked.id_test, outliers)
                interval = source_interval(ranks, LEVEL, seed=scores.metadata["seed"], ood_set=against)
                place: dict[str, Any] = {"set": against, "group": name, "n_id": ranks.n_id, "n_ood": len(outliers)}
                shared = _shared(scores, course, TRANSFER)
                yield Measurement(**shared, **place, metric="auroc", value=ranks.auroc, **ends(interval))


def _shared(scores: ScoreTable, course: Course, protocol: str) -> dict[str, Any]:
    return {**run_context(scores), **detector_context(scores, course.attacked.name), "protocol": protocol}
