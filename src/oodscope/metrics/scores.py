"""The edge of the station: scores come in as anything array-like and leave as checked float64."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def check_scores(scores: ArrayLike, name: str) -> FloatArray:
    """The scores of one sample, one per image, larger = more OOD, as a float64 vector.

    A score that is NaN or infinite has no rank, and to drop it would change the sample that the metric
    speaks of, so both stop here. ``name`` is what an error calls the scores ("ID scores", "svhn scores").
    """
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, one per image: {error}") from None
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, one per image; their shape is {array.shape}")
    if array.size == 0:
        raise DataError(f"{name} are empty; ranking needs at least one score on each side")
    finite = np.isfinite(array)
    if not finite.all():
        rows = np.flatnonzero(~finite)
        first = f"row {rows[0]} ({array[rows[0]]})"
        raise DataError(f"{name}: {rows.size} of {array.size} are NaN or infinite; the first is {first}")
    return array
