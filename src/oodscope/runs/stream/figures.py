"""AUROC along a stream."""

from collections.abc import Iterator

import numpy as np

from oodscope.document.figure import Axis, Figure, Line, figure_name, numbers
from oodscope.metrics.stream import window_pairs
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.stream.protocol import streams_of


def auroc_along(scores: ScoreTable, windows: int) -> Iterator[Figure]:
    """For each schedule and OOD set the AUROC of each detector in each window, pairs of all streams together."""
    sums: dict[tuple[str, str], np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = {}
    for stream in streams_of(scores):
        pairs = [list(window_pairs(stream.scores[name], stream.is_ood, windows)) for name in scores.detectors]
        key = (stream.schedule.name, stream.set)
        sums[key] = sums.get(key, 0) + np.array(pairs)
    for (schedule, name), each in sums.items():
        both = each[0, :, 1] > 0
        if both.sum() < 2:
            continue  # one point is no course
        places = (np.flatnonzero(both) + 0.5) / windows
        lines = tuple(
            Line(
                detector,
                numbers(places),
                numbers(own[both, 0] / own[both, 1]),
                position,
                "{name} {x:.0%}: {y:.2%}",
                markers=True,
            )
            for position, (detector, own) in enumerate(zip(scores.detectors, each))
        )
        yield Figure(
            figure_name("stream", schedule, name),
            f"{name}: {schedule}",
            "AUROC of OOD against ID images of the same window, over the course of the stream, all streams together.",
            lines,
            Axis("part of the stream that has passed", percent=True),
            Axis("AUROC", percent=True),
        )
