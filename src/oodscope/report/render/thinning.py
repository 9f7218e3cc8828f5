"""Thinning: as few points of a curve as a screen needs."""

import heapq
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]

POINTS = 200
WIDTH, HEIGHT = 540, 366
"""Pixels of the largest plot on a page, inside its axes."""


def thin(*views: tuple[Numbers, Numbers], points: int = POINTS, tolerance: float = 0.75) -> Indices:
    """Which points of a curve to keep, so that the line through them stays close to all of them.

    Starting from both ends, the point that is furthest from the line so far is added (Douglas and Peucker 1973, largest
    deviation first), until none is further than ``tolerance`` or ``points`` are used up. Only in samples of a few
    hundred images, whose steps are larger than a pixel, the points may be used up first.

    Parameters
    ----------
    views : the curve as it may be looked at, such as with a linear and with a logarithmic axis: x and y, each from 0 to
        1 across the plot. A point is kept if any view needs it.
    tolerance : in pixels; what moves a line by less than one is not seen.
    """
    scaled = [(WIDTH * x, HEIGHT * y) for x, y in views]
    last = views[0][0].size - 1
    kept = [0, last] if last > 0 else [0]
    open_parts: list[tuple[float, int, int, int]] = []

    def consider(start: int, end: int) -> None:
        if end - start > 1:
            away = _deviation(scaled, start, end)
            furthest = int(away.argmax())
            if away[furthest] > tolerance:
                heapq.heappush(open_parts, (-float(away[furthest]), start, start + 1 + furthest, end))

    consider(0, last)
    while open_parts and len(kept) < points:
        _, start, middle, end = heapq.heappop(open_parts)
        kept.append(middle)
        consider(start, middle)
        consider(middle, end)
    return np.sort(np.array(kept, dtype=np.intp))


def _deviation(views: Sequence[tuple[Numbers, Numbers]], start: int, end: int) -> Numbers:
    """Of the points between two kept ones: how far from the line that joins these, in the view that shows it most."""
    found = np.zeros(end - start - 1)
    for x, y in views:
        left, low = float(x[start]), float(y[start])
        across, up = float(x[end]) - left, float(y[end]) - low
        length = math.hypot(across, up)
        dx, dy = x[start + 1 : end] - left, y[start + 1 : end] - low
        away = np.abs(dx * (up / length) - dy * (across / length)) if length > 0 else np.hypot(dx, dy)
        np.maximum(found, away, out=found)
    return found
