"""Separation: what one detector gives the two sides that a protocol wants told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.ranking.placements import Placements, place, together
from oodscope.results.scoretable import ScoreTable

GROUPS = ("near", "far")


@dataclass(frozen=True)
class Separation:
    """The scores of one detector, with the class of every image.

    Parameters
    ----------
    negative : scores of the images that count as in-distribution.
    foreign : scores of each OOD set.
    groups : the sets of each group that occurs.
    id_classes : the class of each negative.
    ood_classes : the class of each image of the sets that have classes.
    """

    negative: NDArray[np.float64]
    foreign: Mapping[str, NDArray[np.float64]]
    groups: Mapping[str, Sequence[str]]
    id_classes: NDArray[np.int64]
    ood_classes: Mapping[str, NDArray[np.int64]]
    _placed: dict[str, Placements] = field(default_factory=dict, repr=False)

    def placements(self, names: Sequence[str]) -> Placements:
        """The placements of the mean AUROC over these sets; those of each set are computed once."""
        for name in names:
            if name not in self._placed:
                self._placed[name] = place(self.negative, {name: self.foreign[name]})
        return together([self._placed[name] for name in names])

    @property
    def testable(self) -> bool:
        """Whether every sample has the two images without which a paired test has no noise to go by."""
        return min(self.negative.size, *(values.size for values in self.foreign.values())) > 1


def separate(scores: ScoreTable, negatives: Sequence[str]) -> dict[str, Separation]:
    """Each detector's scores, ID against every near and far set; images in one order for all detectors.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    """
    frame = scores.frame
    rows = {role: np.flatnonzero((frame["role"] == role).to_numpy()) for role in negatives}
    known = np.concatenate(list(rows.values()))
    groups = {group: scores.sets(group) for group in GROUPS if scores.sets(group)}
    foreign = {
        name: np.flatnonzero(((frame["set"] == name) & (frame["role"] == group)).to_numpy())
        for group, names in groups.items()
        for name in names
    }
    own = frame["own_class"].to_numpy()
    classes = {name: own[chosen] for name, chosen in foreign.items() if (own[chosen] >= 0).all()}
    labels = frame["label"].to_numpy()[known]
    columns = {detector: frame[detector].to_numpy() for detector in scores.detectors}
    return {
        detector: Separation(
            column[known], {name: column[chosen] for name, chosen in foreign.items()}, groups, labels, classes
        )
        for detector, column in columns.items()
    }
