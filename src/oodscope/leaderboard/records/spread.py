"""Ranks of printed rows from the spread over training runs that they state: only means and deviations are known."""

from collections.abc import Sequence
from functools import cache
from math import log

import numpy as np

RUNS = 3
"""Training runs behind a printed spread: OpenOOD's tables and boards state population deviations over three."""


def spread_ranks(
    values: Sequence[float], spreads: Sequence[float | None], *, runs: int = RUNS, level: float = 0.95
) -> list[tuple[int, int] | None]:
    r"""Best and worst place of each row for other training runs, all at once; None for rows of a single run.

    Two rows differ where :math:`|\Delta| > q \sqrt{(v_i + v_j) / 2R}`: Tukey's range test. The variance of a row is the
    larger of its own and of that which all rows share, because three runs alone hardly tell how large noise is. The
    shared one is their median over that of :math:`\chi^2_2 / 2`, ln 2: a few methods that are unstable by themselves
    do not blur all others. Printed deviations are those of the population and grow by :math:`\sqrt{R / (R - 1)}`.

    Parameters
    ----------
    values, spreads : of every row, as shares; more is better. ``None`` where no spread is printed.
    """
    known = [place for place, spread in enumerate(spreads) if spread is not None]
    found: list[tuple[int, int] | None] = [None] * len(values)
    if len(known) < 2:
        return found
    own = np.array([values[place] for place in known])
    variances = np.array([float(spreads[place] or 0.0) ** 2 for place in known]) * runs / (runs - 1)
    variances = np.maximum(variances, float(np.median(variances)) / log(2))
    critical = _critical(level, len(known), len(known) * (runs - 1))
    for row, place in enumerate(known):
        reach = critical * np.sqrt((variances[row] + variances) / (2 * runs))
        better, worse = int((own > own[row] + reach).sum()), int((own < own[row] - reach).sum())
        found[place] = (1 + better, len(known) - worse)
    return found


@cache
def _critical(level: float, rows: int, freedom: int) -> float:
    """The quantile of the studentised range, which takes a fifth of a second; boards ask for few."""
    # more than a second to import, which a server needs for nothing else
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(level, rows, freedom))
