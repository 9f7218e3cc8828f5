"""Separation: the scores of one detector, ID against every OOD set, with the class of every image."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from oodscope.data.benchmark import Role
from oodscope.metrics.metric import Columns, Population, columns_of
from oodscope.metrics.ranking.placements import Placements, place, together
from oodscope.results.scoretable import ScoreTable

Groups = Mapping[str, Sequence[Role]]
"""Which roles' sets each group takes together, as :class:`Protocol` has it."""

GROUPS: Groups = {"near": ("near",), "far": ("far",)}


@dataclass(frozen=True)
class Separation:
    """The scores of one detector, with the class of every image.

    Parameters
    ----------
    negative : scores of the images that count as in-distribution.
    ood : scores of each OOD set.
    groups : the sets of each group that occurs.
    id_classes : the class of each negative.
    ood_classes : the class of each image of the sets that have classes.
    id_correct : whether the classifier gets each negative right.
    populations : what the classes of each set are; ``none`` where its images have no classes.
    class_names : of the sets whose classes have names.
    """

    negative: NDArray[np.float64]
    ood: Mapping[str, NDArray[np.float64]]
    groups: Mapping[str, Sequence[str]]
    id_classes: NDArray[np.int64]
    ood_classes: Mapping[str, NDArray[np.int64]]
    id_correct: NDArray[np.bool_]
    populations: Mapping[str, Population] = field(default_factory=dict)
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _placed: dict[str, Placements] = field(default_factory=dict, repr=False)

    def placements(self, names: Sequence[str]) -> Placements:
        """The placements of the mean AUROC over these sets; those of each set are computed once."""
        for name in names:
            if name not in self._placed:
                self._placed[name] = place(self.negative, {name: self.ood[name]})
        return together([self._placed[name] for name in names])

    def columns(self) -> dict[str, Columns]:
        """Plain columns of the negatives beside each OOD set, for metrics that are weighted functionals."""
        return {
            name: columns_of(self.negative, values, id_correct=self.id_correct, ood_class=self.ood_classes.get(name))
            for name, values in self.ood.items()
        }

    def take(self, negative: NDArray[np.intp], ood: Mapping[str, NDArray[np.intp]]) -> "Separation":
        """Some of the images, by their places."""
        return replace(
            self,
            negative=self.negative[negative],
            ood={name: self.ood[name][rows] for name, rows in ood.items()},
            id_classes=self.id_classes[negative],
            ood_classes={name: own[ood[name]] for name, own in self.ood_classes.items()},
            id_correct=self.id_correct[negative],
            _placed={},
        )

    @property
    def testable(self) -> bool:
        """Whether every sample has the two images without which a paired test has no noise to go by."""
        return min(self.negative.size, *(values.size for values in self.ood.values())) > 1


def place_all(separations: Mapping[str, Separation]) -> None:
    """Compute the placements of every detector on every set, on all cores: NumPy sorts and searches without a lock."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None) as pool:
        for done in [pool.submit(each.placements, list(each.ood)) for each in separations.values()]:
            done.result()


def separate(scores: ScoreTable, negatives: Sequence[str], groups: Groups = GROUPS) -> dict[str, Separation]:
    """Each detector's scores, ID against every OOD set; images in one order for all detectors.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    groups : the OOD sets that count, and whose mean is taken.
    """
    frame = scores.frame
    rows = {role: np.flatnonzero((frame["role"] == role).to_numpy()) for role in negatives}
    known = np.concatenate(list(rows.values()))
    members = {group: [name for role in roles for name in scores.sets(role)] for group, roles in groups.items()}
    members = {group: names for group, names in members.items() if names}
    ood = {
        name: np.flatnonzero(((frame["set"] == name) & (frame["role"] == role)).to_numpy())
        for roles in groups.values()
        for role in roles
        for name in scores.sets(role)
    }
    own = frame["own_class"].to_numpy()
    classes = {name: own[chosen] for name, chosen in ood.items() if (own[chosen] >= 0).all()}
    said = scores.context.populations
    populations: dict[str, Population] = {
        name: said.get(name, "sampled") if name in classes else "none" for name in ood
    }
    labels = frame["label"].to_numpy()[known]
    correct = scores.correct()[known]
    columns = {detector: frame[detector].to_numpy() for detector in scores.detectors}
    return {
        detector: Separation(
            column[known],
            {name: column[chosen] for name, chosen in ood.items()},
            members,
            labels,
            classes,
            correct,
            populations,
            scores.context.classes,
        )
        for detector, column in columns.items()
    }
