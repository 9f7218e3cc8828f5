"""Disagreement: do two detectors see the same images as strange?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.report.plots.marks import heat, layout, names, square
from oodscope.report.plots.plot import PlotlyFigure, shown
from oodscope.results.scoretable import ScoreTable

KEEP = 0.95
"""The share of ID test images that a verdict keeps."""

Numbers = NDArray[np.float64]


def rank_correlations(scores: ScoreTable, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """Spearman's correlation between the scores of every two detectors, over all near, far and ID test images.

    Parameters
    ----------
    detectors : in the order of rows and columns; all, in the order of the table, by default.
    """
    chosen = list(detectors or scores.detectors)
    tested = _tested(scores)
    ranks = np.array([rankdata(scores.scores(name)[tested]) for name in chosen])
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    # a detector that gives every image the same score orders nothing
    unit = np.divide(centred, length[:, None], out=np.zeros_like(centred), where=length[:, None] > 0)
    found = np.clip(unit @ unit.T, -1.0, 1.0)
    cells = [
        [float(found[i, j]) if length[i] > 0 and length[j] > 0 else None for j in range(len(chosen))]
        for i in range(len(chosen))
    ]
    hover = "%{y} and %{x}<br>Spearman's correlation %{z:.3f}"
    return PlotlyFigure(
        "rank-correlations",
        "Do detectors order images alike?",
        f"Spearman's rank correlation of the scores of {tested.sum():,} test images, ID and OOD together: 1 is the "
        "same order, 0 none in common, -1 the reverse. Detectors far from 1 make different mistakes, and may be worth "
        "combining.",
        (heat(cells, chosen, chosen, hover, zmin=-1, zmax=1, written=".2f", meta={"scale": "diverging"}),),
        layout(names(""), names("", autorange="reversed"), height=square(len(chosen))),
    )


def verdict_differences(scores: ScoreTable, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """The share of test images on whose verdict two detectors differ, each set to keep 95 % of ID test images.

    Parameters
    ----------
    detectors : in the order of rows and columns; all, in the order of the table, by default.
    """
    chosen = list(detectors or scores.detectors)
    verdicts = np.array([_rejected(scores, name) for name in chosen])
    tested, known = _tested(scores), (scores.frame["role"] == "id_test").to_numpy()
    everywhere, on_id, on_ood = (_differing(verdicts[:, rows]) for rows in (tested, known, tested & ~known))
    beside = [[[shown(on_id[i, j]), shown(on_ood[i, j])] for j in range(len(chosen))] for i in range(len(chosen))]
    hover = (
        "%{y} and %{x}<br>differ on %{z:.1%} of the images<br>%{customdata[0]:.1%} of ID, %{customdata[1]:.1%} of OOD"
    )
    return PlotlyFigure(
        "verdict-differences",
        "On how many images do verdicts differ?",
        f"Each detector rejects what scores at or above the threshold that keeps {KEEP:.0%} of ID test images. Shown "
        "is the share of test images that one rejects and the other keeps: 0 is full agreement.",
        (heat(everywhere.tolist(), chosen, chosen, hover, zmin=0, written=".0%", customdata=beside),),
        layout(names(""), names("", autorange="reversed"), height=square(len(chosen))),
    )


def _tested(scores: ScoreTable) -> NDArray[np.bool_]:
    return scores.frame["role"].isin(("id_test", "near", "far")).to_numpy()


def _rejected(scores: ScoreTable, detector: str) -> NDArray[np.bool_]:
    threshold = ThresholdSample(scores.scores(detector, role="id_test")).threshold(KEEP)
    return np.asarray(scores.scores(detector) >= threshold.value)


def _differing(verdicts: NDArray[np.bool_]) -> Numbers:
    """``[i, j]``: the share of columns in which rows i and j differ: what either rejects, less twice what both do."""
    rejected = verdicts.astype(np.float64)
    both, count = rejected @ rejected.T, rejected.sum(axis=1)
    return np.asarray((count[:, None] + count - 2 * both) / verdicts.shape[1])
