"""The conventional metrics, with all images of known classes as ID and with the correctly classified ones only."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import least_count
from oodscope.protocols.estimates import LEVEL, REPLICATES, Estimate, estimate_rows
from oodscope.protocols.labelled_sets import LabelledSet
from oodscope.results.measurement import Measurement
from oodscope.results.scoretable import ScoreTable

TPR = 0.95


def conventional_rows(
    scores: ScoreTable, detector: str, sets: Sequence[LabelledSet], shared: Mapping[str, Any]
) -> Iterator[Measurement]:
    """AUROC and FPR95 against each foreign set, twice.

    With all of ``id_test`` as ID, a detector is blamed for distrusting what the classifier gets wrong; with its correct
    images only, it is not. The order of two detectors may turn between the two (Fig. 2 of the paper).
    """
    (known,) = (each for each in sets if each.role == "id_test")
    column = scores.scores(detector)
    for suffix, rows in (("", known.rows), ("_correct_id", known.rows[known.correct])):
        rankings = {each.name: Ranking(column[rows], column[each.rows]) for each in sets if each.foreign and len(rows)}
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
    """The share of a resampled foreign set that is kept at each operating point."""
    shares = np.searchsorted(ascending, operating, side="right") / len(ascending)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(6, *name.encode())))
    return np.asarray(rng.binomial(len(ascending), shares) / len(ascending))
