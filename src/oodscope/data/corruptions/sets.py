"""Covariate shift on demand: a set of corrupted images from any set."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError
from oodscope.data.corruptions.catalog import CORRUPTIONS, members
from oodscope.data.corruptions.severities import WORST
from oodscope.data.corruptions.source import CorruptedSource
from oodscope.data.imageset import ImageSet

USUAL = 10_000
"""Images in the corrupted sets of OpenOOD."""


def corrupt(
    images: ImageSet,
    kind: str = "c",
    *,
    severity: float | None = None,
    count: int | None = None,
    seed: int = 0,
    name: str | None = None,
) -> ImageSet:
    """A covariate-shifted set: the same classes, under corruptions.

    Every combination of corruption and severity holds as many images as every other, and every image is taken as
    often as every other, up to one; no image is taken twice with one combination. Images keep their labels, and are
    corrupted when they are read. See ``CorruptedSource`` for the size at which this happens.

    Parameters
    ----------
    images : the set to corrupt.
    kind : ``"c"`` for the fifteen corruptions of CIFAR-10-C and ImageNet-C, ``"c_extra"`` for the four beside them, or
        the name of one (``oodscope list corruptions``).
    severity : above 0 and at most 5; by default 1, 2, 3, 4 and 5 alike.
    count : how many images; by default 10,000 as in OpenOOD, or as many as there are combinations. With one
        corruption and one severity, by default all.
    name : of the set; by default that of ``images``, then ``kind`` and severity. It ends with what is not comparable
        with the published sets, such as ``-own-frost``.

    Examples
    --------
    >>> oods.corrupt(bench.id_test, "fog", severity=3).name
    'id_test-fog-3'
    """
    if severity is not None and not 0 < severity <= WORST:
        raise DataError(f"corrupt {images.name!r}: severity {severity:g} is not above 0 and at most {WORST}")
    severities = range(1, WORST + 1) if severity is None else (severity,)
    mixed = [(corruption, float(each)) for corruption in members(kind) for each in severities]
    possible = len(images) * len(mixed)
    wanted = (len(images) if len(mixed) == 1 else min(USUAL, possible)) if count is None else count
    if not 0 < wanted <= possible:
        raise DataError(f"corrupt {images.name!r}: count must be between 1 and {possible}, not {wanted}")
    rows, combinations = _dealt(len(images), len(mixed), wanted, seed)
    names = [mixed[combination][0] for combination in combinations]
    strengths = np.array([mixed[combination][1] for combination in combinations])
    source = CorruptedSource(images, rows, names, strengths, seed)
    return ImageSet(
        name or _name(images.name, kind, severity, set(names)),
        source,
        images.labels[rows],
        images.class_names,
        hierarchy={level: column[rows] for level, column in images.hierarchy.items()},
    )


def _dealt(images: int, mixed: int, count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``count`` different pairs of image and combination, evenly over both, sorted by combination.

    Counting up, the pair (n mod images, n mod mixed) repeats after their least common multiple; from there the
    combinations are shifted by one, which meets no pair again.
    """
    number = np.arange(count)
    order = np.random.default_rng(seed).permutation(images)
    rows = order[number % images]
    combination = (number + number // math.lcm(images, mixed)) % mixed
    sorting = np.lexsort((rows, combination))
    return rows[sorting], combination[sorting]


def _name(parent: str, kind: str, severity: float | None, used: set[str]) -> str:
    strength = "" if severity is None else f"-{severity:g}"
    own = "".join(f"-own-{name}" for name in CORRUPTIONS if name in used and not CORRUPTIONS[name].comparable)
    return f"{parent}-{kind}{strength}{own}"


class CorruptedSpec(StrictModel):
    """The ``id_test`` of the same benchmark under corruptions; see ``oodscope.corrupt`` for the parameters.

    ::

        csid:
          cifar10c: {source: corrupted, of: id_test, kind: c, count: 10000, seed: 0}

    Only what is judged may be corrupted to be judged: a shifted copy of a validation image would be a leak that
    no comparison of contents finds.
    """

    source: Literal["corrupted"]
    of: Literal["id_test"] = "id_test"
    kind: str = "c"
    severity: float | None = Field(default=None, gt=0, le=5)
    count: int | None = Field(default=None, gt=0)
    seed: int = 0

    def derive(self, name: str, images: ImageSet) -> ImageSet:
        """The set called ``name``, from the opened ``id_test``."""
        return corrupt(images, self.kind, severity=self.severity, count=self.count, seed=self.seed, name=name)
