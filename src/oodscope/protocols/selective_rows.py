"""Metrics without a threshold: how early failures are accepted, and how well foreign images are told apart."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics import Ranking, Selection, auroc_interval, bootstrap, resamples
from oodscope.metrics.selective import SELECTIVE, draw_counts
from oodscope.protocols.estimates import LEVEL, Estimate, estimate_rows
from oodscope.protocols.labelled_sets import LabelledSet
from oodscope.results import Measurement, ScoreTable

REPLICATES = 1000


def selective_estimates(
    scores: ScoreTable, sets: Sequence[LabelledSet], seed: int
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """By detector, metric and set. The population of a foreign set is ``id_test`` and the set: alone it would hold
    failures only, and there would be nothing to order. The population of any other set is the set itself.

    Each set's draws are made once for all detectors; ``id_test`` keeps one draw for all the populations it is part of.
    """
    (known,) = (each for each in sets if each.role == "id_test")
    known_counts = draw_counts(resamples(len(known), seed=seed), len(known), REPLICATES)
    found: dict[str, dict[str, dict[str, Estimate]]] = {
        detector: {metric: {} for metric in SELECTIVE} for detector in scores.detectors
    }
    for each in sets:
        parts = [known, each] if each.foreign else [each]
        counts = np.hstack([_counts(part, known, known_counts, seed) for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        correct = np.concatenate([part.correct for part in parts])
        n_ood = len(each) if each.foreign else 0
        for detector in scores.detectors:
            selection = Selection(scores.scores(detector)[rows], correct)
            points, replicates = selection.points(), selection.replicates(counts)
            for metric in SELECTIVE:
                found[detector][metric][each.name] = Estimate(
                    points[metric], replicates[metric], len(rows) - n_ood, n_ood
                )
    return found


def conventional_rows(
    scores: ScoreTable, detector: str, sets: Sequence[LabelledSet], shared: Mapping[str, Any]
) -> Iterator[Measurement]:
    """AUROC and FPR95 against each foreign set twice: with all of ``id_test`` as ID, and with its correct images only.

    The first blames a detector for distrusting images that the classifier gets wrong; the second does not.
    """
    (known,) = (each for each in sets if each.role == "id_test")
    foreign = [each for each in sets if each.foreign]
    column = scores.scores(detector)
    for suffix, rows in (("", known.rows), ("_correct_id", known.rows[known.correct])):
        if not len(rows) or not foreign:
            continue
        others = {each.name: column[each.rows] for each in foreign}
        draws = bootstrap(column[rows], others, seed=int(shared["seed"] or 0))
        rankings = {name: Ranking(column[rows], values) for name, values in others.items()}
        for metric in ("auroc", "fpr95_id_positive"):
            estimates = {
                name: Estimate(
                    each.auroc if metric == "auroc" else each.fpr_at_tpr(positive="id"),
                    draws.values[metric][name],
                    each.n_id,
                    each.n_ood,
                    auroc_interval(each, LEVEL) if metric == "auroc" else None,
                )
                for name, each in rankings.items()
            }
            yield from estimate_rows(shared, metric + suffix, sets, estimates)


def _counts(part: LabelledSet, known: LabelledSet, known_counts: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    if part is known:
        return known_counts
    return draw_counts(resamples(len(part), seed=seed, ood_set=part.name), len(part), REPLICATES)
