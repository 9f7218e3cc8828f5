"""Disagreement: do two detectors find the same images out-of-distribution?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from oodscope.document.figure import Axis, Figure, Heatmap, Matrix, matrix
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.results.scoretable import ScoreTable

KEEP = 0.95
"""The share of ID test images that a verdict keeps."""

Numbers = NDArray[np.float64]


def rank_correlations(scores: ScoreTable, detectors: Sequence[str] | None = None) -> Figure:
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
    ordered = np.outer(length > 0, length > 0)
    hover = "{row} and {column}\nSpearman's correlation {value:.3f}"
    return Figure(
        "rank-correlations",
        "Do detectors order images alike?",
        f"Spearman's rank correlation of the scores of {tested.sum():,} test images, ID and OOD together: 1 is the "
        "same order, 0 none in common, -1 the reverse. Detectors far from 1 make different mistakes, and may be worth "
        "combining.",
        (_square(chosen, matrix(np.where(ordered, found, np.nan)), ".2f", hover, low=-1.0, high=1.0, diverging=True),),
        *_axes(chosen),
    )


def verdict_differences(scores: ScoreTable, detectors: Sequence[str] | None = None) -> Figure:
    """The share of test images on whose verdict two detectors differ, each set to keep 95 % of ID test images.

    Parameters
    ----------
    detectors : in the order of rows and columns; all, in the order of the table, by default.
    """
    chosen = list(detectors or scores.detectors)
    verdicts = np.array([_rejected(scores, name) for name in chosen])
    tested, known = _tested(scores), (scores.frame["role"] == "id_test").to_numpy()
    everywhere, on_id, on_ood = (_differing(verdicts[:, rows]) for rows in (tested, known, tested & ~known))
    beside = tuple(tuple(zip(*rows)) for rows in zip(on_id.tolist(), on_ood.tolist()))
    hover = "{row} and {column}\ndiffer on {value:.1%} of the images\n{beside[0]:.1%} of ID, {beside[1]:.1%} of OOD"
    return Figure(
        "verdict-differences",
        "On how many images do verdicts differ?",
        f"Each detector rejects what scores at or above the threshold that keeps {KEEP:.0%} of ID test images. Shown "
        "is the share of test images that one rejects and the other keeps: 0 is full agreement.",
        (_square(chosen, matrix(everywhere), ".0%", hover, low=0.0, beside=beside),),
        *_axes(chosen),
    )


def _square(names: Sequence[str], values: Matrix, written: str, hover: str, **more: Any) -> Heatmap:
    return Heatmap(tuple(names), tuple(names), values, written, hover=hover, **more)


def _axes(names: Sequence[str]) -> tuple[Axis, Axis]:
    axis = Axis(scale="names", categories=tuple(names))
    return axis, axis


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
