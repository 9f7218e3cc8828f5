"""Which images of a set of outliers the chains of an attack start from."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import UnknownNameError
from oodscope.data.imageset import ImageSet

SourceDraw = Literal["stratified", "first"]
"""``stratified``: a seeded draw with every class in its share. ``first``: the first images of the set, as the paper
takes them; folders are sorted by class, so their first images show a few classes."""


def source_order(images: ImageSet, draw: SourceDraw = "stratified", seed: int = 0) -> NDArray[np.int64]:
    r"""All rows of a set in an order whose every beginning is a proportional stratified draw.

    The :math:`n_c` images of class c are shuffled; the j-th gets the key :math:`(j + u)/n_c` with u uniform in [0, 1),
    and rows are sorted by their keys. A key by itself is uniform, so each image is equally likely to be early;
    among the first k images of n each class has :math:`k n_c / n` of them, give or take one or two. Consecutive parts
    are draws of the same kind: MinRank's runs, and 1,000 chains as the beginning of 5,000.

    Parameters
    ----------
    images : the outliers; without labels they count as one class.
    draw : see ``SourceDraw``.
    seed : of the draw.
    """
    if draw not in get_args(SourceDraw):
        raise UnknownNameError("draw of sources", draw, get_args(SourceDraw))
    if draw == "first":
        return np.arange(len(images))
    rng, labels = np.random.default_rng([seed, 0x5EED]), np.asarray(images.labels)
    keys = np.empty(len(images))
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        keys[rows] = (np.arange(len(rows)) + rng.random(len(rows))) / len(rows)
    return np.argsort(keys, kind="stable").astype(np.int64)
