"""Running sums in lanes of 16 bits are those of whole numbers, however many draws there are."""

import numpy as np
import pytest

from oodscope.metrics.resampling.counting import running
from oodscope.metrics.resampling.draws import Drawn, Workspace


@pytest.mark.parametrize("most", [1, 9, 900, 40_000, 65_535])
@pytest.mark.parametrize("tied", [False, True])
def test_sums_beyond_16_bits_are_exact(most, tied, monkeypatch):
    """Large counts in half of the replicates drive them apart by more than a lane holds."""
    monkeypatch.setattr("oodscope.metrics.resampling.counting._PIECE", 2**8)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, most + 1, size=(500, 8)).astype(np.uint16)
    counts[:, ::2] //= max(1, most // 2)
    order = rng.permutation(500)
    ends = np.unique(np.append(rng.integers(1, 501, size=60), 500)) if tied else np.arange(1, 501)
    sums = np.cumsum(counts[order], axis=0, dtype=np.int64)[ends - 1]
    gained = np.diff(sums, axis=0, prepend=0)
    for start, own, tp in running(Drawn(counts, int(counts.max())), order, ends.astype(float), Workspace()):
        np.testing.assert_array_equal(tp, sums[start : start + len(tp)])
        np.testing.assert_array_equal(own, gained[start : start + len(tp)])
    assert start + len(tp) == ends.size
