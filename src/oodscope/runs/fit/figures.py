"""The scores of calibration images, and where the threshold cuts them."""

import numpy as np

from oodscope.document.figure import Axis, Figure, Histogram, Line, figure_name, numbers
from oodscope.runs.fit.run import Fit

_BINS = 40


def calibration_scores(fit: Fit) -> Figure:
    """A histogram of the calibration scores, and the threshold."""
    scores, threshold = fit.calibration.scores, fit.detector.threshold
    heights, edges = np.histogram(scores, bins=_BINS)
    return Figure(
        figure_name("calibration", fit.detector.id, fit.record.model),
        f"{fit.detector.id}: scores of the calibration images",
        "How many calibration images have which score, larger is more OOD; what lies right of the line is rejected.",
        (
            Histogram("calibration images", numbers(edges), numbers(heights), "id", filled=True, hover="{x:.4g}: {y}"),
            Line("threshold", numbers([threshold] * 2), numbers([0, heights.max()]), "ink", "{name} {x:.6g}"),
        ),
        Axis("score"),
        Axis("images", from_zero=True, whole=True),
    )
