"""The pace of work: how long one piece takes once memory is there and kernels are chosen."""

from collections.abc import Callable
from time import perf_counter


def pace(piece: Callable[[], object]) -> float:
    """Seconds of a piece of work, the faster of two: the first look is not at the pace of what follows.

    Parameters
    ----------
    piece : returns when it is done; what a device still works on is not counted.
    """
    best = float("inf")
    for _ in range(2):
        began = perf_counter()
        piece()
        best = min(best, perf_counter() - began)
    return best
