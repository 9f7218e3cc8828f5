"""Metrics without a threshold: how early failures are accepted."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.rejection.selective import SELECTIVE, Selection, draw_counts
from oodscope.metrics.resampling.draws import resamples
from oodscope.protocols.estimates import REPLICATES, Estimate
from oodscope.protocols.labelled_sets import LabelledSet
from oodscope.results.scoretable import ScoreTable


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


def _counts(part: LabelledSet, known: LabelledSet, known_counts: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    if part is known:
        return known_counts
    return draw_counts(resamples(len(part), seed=seed, ood_set=part.name), len(part), REPLICATES)
