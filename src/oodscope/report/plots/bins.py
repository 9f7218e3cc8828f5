"""Bins: how scores are counted for a histogram."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

BINS = 40
_TAIL = 0.005


def shared_edges(samples: Sequence[Numbers], bins: int = BINS) -> Numbers:
    """Bins that serve all samples of one detector, so that its histograms can be compared by eye.

    They span what lies between the outermost half percents of any sample: one far outlier would otherwise
    squeeze everything else into a single bar.
    """
    low = min(float(np.quantile(sample, _TAIL)) for sample in samples)
    high = max(float(np.quantile(sample, 1 - _TAIL)) for sample in samples)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def shares(sample: Numbers, edges: Numbers) -> Numbers:
    """The share of a sample in each bin; what lies beyond the ends counts in the outermost bins."""
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), bins=edges)
    return counts / len(sample)


def outline(edges: Numbers, heights: Numbers) -> tuple[Numbers, Numbers]:
    """A histogram as the points of a stepped line: the middle of each bin, where a pointer meets it, and both ends.

    Plotly's shape ``hvh`` steps half-way between points, which for bins of one width is at their edges.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    x = np.concatenate([edges[:1], middles, edges[-1:]])
    return x, np.concatenate([heights[:1], heights, heights[-1:]])
