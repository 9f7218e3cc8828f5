"""Bins: how values are counted for a histogram."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

BINS = 40
_TAIL = 0.005


def shared_edges(samples: Sequence[Values], bins: int = BINS) -> Values:
    """Bins that serve all samples of one detector, so that its histograms can be compared by eye.

    They span what lies between the outermost half percents of any sample: one far outlier would otherwise
    squeeze everything else into a single bar.
    """
    low = min(float(np.quantile(sample, _TAIL)) for sample in samples)
    high = max(float(np.quantile(sample, 1 - _TAIL)) for sample in samples)
    return even_edges(low, high, bins)


def even_edges(low: float, high: float, bins: int) -> Values:
    """Edges of bins of one width between two ends; around the one value where both are the same."""
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def bin_shares(sample: Values, edges: Values) -> Values:
    """The share of a sample in each bin; what lies beyond the ends counts in the outermost bins."""
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), bins=edges)
    return counts / len(sample)
