"""The ranks that a table can vouch for."""

from collections.abc import Sequence
from itertools import combinations

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import PairedTest, paired_delong
from oodscope.metrics.placements import Placements


def rank_ranges(detectors: Sequence[Placements], *, alpha: float = 0.05) -> list[tuple[int, int]]:
    """For each detector the ranks that its (mean) AUROC may have: ``(1, 4)`` says fourth at worst.

    Every pair is tested by paired DeLong and the p-values are adjusted by Holm. A detector's best rank is one
    more than the detectors that are significantly better, its worst leaves behind those that are significantly
    worse. Because Holm keeps the chance of *any* false verdict below alpha, all ranges of a table hold at once
    (Mohamad, Goeman & van Zwet 2019). Ranks of bootstrap replicates, the common alternative, come out too
    narrow among near-equals: a replicate has no ties, however equal the detectors are.
    """
    if not detectors:
        raise DataError("ranks need at least one detector")
    pairs = list(combinations(range(len(detectors)), 2))
    tests = [paired_delong(detectors[a], detectors[b]) for a, b in pairs]
    return ranges_from_tests(len(detectors), pairs, tests, alpha)


def ranges_from_tests(
    count: int, pairs: Sequence[tuple[int, int]], tests: Sequence[PairedTest], alpha: float
) -> list[tuple[int, int]]:
    """The same from tests that are made already; larger is better."""
    better, worse = [0] * count, [0] * count
    for (a, b), test, p in zip(pairs, tests, holm([test.p for test in tests]), strict=True):
        if p < alpha:
            winner, loser = (a, b) if test.difference > 0.0 else (b, a)
            better[loser] += 1
            worse[winner] += 1
    return [(1 + above, count - below) for above, below in zip(better, worse)]
