"""From scores back to images: small pictures of examples and of those that detectors get most wrong."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.decoding import as_rgb
from oodscope.data.imageset import ImageSet
from oodscope.execution.lookahead import ahead
from oodscope.results.gallery import COUNT, SIDE, Gallery, examples, rows_of, shown_sets, worst
from oodscope.results.scoretable import ScoreTable

MOST_BYTES = 4 * 2**20
"""Bytes of pixels that a gallery may hold."""


def picture_hardest(benchmark: Benchmark, scores: ScoreTable, *, most_bytes: int = MOST_BYTES) -> Gallery:
    """Read again a few examples of every set and the images that some detector gets most wrong, and keep them small.

    The worst image of every set and detector comes first, then the examples, then the second worst of each, and so on
    while they fit: a run of many detectors shows fewer images of each rather than none of some.

    Parameters
    ----------
    most_bytes : bytes of pixels to stay below.
    """
    sets = {images.name: images for _, images in benchmark.members()}
    found: dict[tuple[str, str], NDArray[np.uint8]] = {}
    wanted = list(_in_turn(scores))
    # decoders let go of the interpreter; a few wait ahead, so that few are read in vain
    with closing(ahead(wanted, lambda each: _picture(sets[each[0]], each[1]))) as pictures:
        for (name, place), picture in zip(wanted, pictures):
            if picture is None:
                continue
            most_bytes -= picture.nbytes
            if most_bytes < 0:
                break
            found[name, sets[name].source.name(int(sets[name].rows[place]))] = picture
    return Gallery(tuple(found), tuple(found.values()), benchmark.class_names)


def _in_turn(scores: ScoreTable) -> Iterator[tuple[str, int]]:
    """Set and place in it of the worst image of each set and detector, then of the examples, then of the second worst.

    Each image comes once.
    """
    orders, shown = [], []
    for role, name in shown_sets(scores):
        own = rows_of(scores, role, name)
        orders += [(name, worst(scores.scores(detector)[own], role).tolist()) for detector in scores.detectors]
        shown += [(name, place) for place in np.searchsorted(own, examples(scores, role, name)).tolist()]
    ranked = [[(name, places[depth]) for name, places in orders if depth < len(places)] for depth in range(COUNT)]
    return iter(dict.fromkeys([*ranked[0], *shown, *(each for rank in ranked[1:] for each in rank)]))


def _picture(images: ImageSet, place: int) -> NDArray[np.uint8] | None:
    try:
        (pixels,) = images.images([place])
    except (OodscopeError, OSError):
        # scores may come from the store while files have gone: that costs a picture, not the run its numbers
        return None
    picture = Image.fromarray(as_rgb(pixels))
    picture.thumbnail((SIDE, SIDE))
    return np.asarray(picture, dtype=np.uint8)
