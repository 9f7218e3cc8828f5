r"""Placements: the share of an AUROC that each image contributes, in the order of the images.

DeLong's placements (see :mod:`oodscope.metrics.ranking.delong`) make a mean of AUROCs a mean over images. Kept image by
image, they give what sorted scores cannot: the noise of a *difference* of two detectors, which is that of the
differences of their placements, and the noise that images of one class share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores


@dataclass(frozen=True)
class Placements:
    """One detector on K OOD sets against one ID sample, or the difference of two detectors.

    Parameters
    ----------
    of_id : for each ID image the share of OOD images above it, averaged over the sets.
    of_ood : for each OOD set, the share of ID images below each of its images; a tie counts half in both.
    """

    of_id: FloatArray
    of_ood: Mapping[str, FloatArray]

    @cached_property  # a table of many detectors asks once per pair
    def mean(self) -> float:
        """The unweighted mean over the sets of the AUROC (or of its difference)."""
        return float(np.mean([placed.mean() for placed in self.of_ood.values()]))

    @property
    def n_id(self) -> int:
        """ID images."""
        return self.of_id.size

    @property
    def n_ood(self) -> int:
        """OOD images of all sets."""
        return sum(placed.size for placed in self.of_ood.values())

    def __sub__(self, other: Placements) -> Placements:
        if self.n_id != other.n_id or {k: v.size for k, v in self.of_ood.items()} != {
            k: v.size for k, v in other.of_ood.items()
        }:
            raise DataError("two detectors can be compared image by image only if both scored the same images")
        return Placements(
            self.of_id - other.of_id, {name: placed - other.of_ood[name] for name, placed in self.of_ood.items()}
        )


def place(id_scores: ArrayLike, ood_sets: Mapping[str, ArrayLike]) -> Placements:
    """The placements of one detector: scores of the ID images and of each OOD set, larger = more OOD."""
    if not ood_sets:
        raise DataError("a mean AUROC needs at least one OOD set")
    id_checked = check_scores(id_scores, "ID scores")
    id_sorted = np.sort(id_checked)
    ood = {name: check_scores(scores, f"{name} scores") for name, scores in ood_sets.items()}
    of_id = np.mean([1.0 - _share_below(np.sort(scores), id_checked) for scores in ood.values()], axis=0)
    return Placements(of_id, {name: _share_below(id_sorted, scores) for name, scores in ood.items()})


def together(placed: Sequence[Placements]) -> Placements:
    """Several placements against one ID sample as one: the mean over all their sets."""
    names = [name for each in placed for name in each.of_ood]
    if len(set(names)) < len(names):
        raise DataError("a mean AUROC takes each OOD set once")
    weights = np.array([len(each.of_ood) for each in placed], dtype=np.float64)
    of_id = np.average([each.of_id for each in placed], axis=0, weights=weights)
    return Placements(of_id, {name: values for each in placed for name, values in each.of_ood.items()})


def _share_below(sorted_scores: FloatArray, scores: FloatArray) -> FloatArray:
    below = sorted_scores.searchsorted(scores, "left") + sorted_scores.searchsorted(scores, "right")
    return np.asarray(below / (2.0 * sorted_scores.size))
