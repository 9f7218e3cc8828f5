r"""Other networks of a recipe: what of a difference is the luck of the seed?

Post-hoc detectors share their checkpoints: a network that is hard for one is hard for the other, so differences are
paired by seed and the contributions of classes and images are averaged over the seeds first. Trainings share nothing
but the images: seed 1 of one method has nothing in common with seed 1 of another. Their seeds are not paired, and three
seeds know their own spread badly, so the spread is pooled over all methods of a table,

.. math:: \mathrm{Var}(A - B) = \frac{s^2_\text{class}}{C} + \frac{2 s^2_\text{seed}}{S}, \qquad
          \nu_\text{seed} = \sum_\text{methods} (S - 1) .

With one seed nothing can be said of other networks.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.influence import Estimates, Part, SetUnits, join_sets, part_of_units
from oodscope.metrics.scores import FloatArray

CANNOT_SAY = "cannot say: one network was trained, and a statement about others of its recipe needs 2 seeds or more"


def average_networks(networks: Sequence[Sequence[SetUnits]]) -> list[SetUnits]:
    """The units of every set averaged over networks that scored the same images, in the same order."""
    first = networks[0]
    for other in networks[1:]:
        if [(a.name, a.of_id.shape, a.of_ood.shape) for a in first] != [
            (b.name, b.of_id.shape, b.of_ood.shape) for b in other
        ]:
            raise DataError("networks can be averaged only if all scored the same images with the same detectors")
    return [
        SetUnits(
            name=own[0].name,
            values=np.mean([each.values for each in own], axis=0),
            plain=np.mean([each.plain for each in own], axis=0),
            of_id=np.mean([each.of_id for each in own], axis=0),
            of_ood=np.mean([each.of_ood for each in own], axis=0),
            classes=own[0].classes,
        )
        for own in zip(*networks)
    ]


def beside(columns: Sequence[Sequence[SetUnits]]) -> list[SetUnits]:
    """The units of every set with the detectors of all of them as columns; all scored the same images."""
    return [
        SetUnits(
            own[0].name,
            np.concatenate([each.values for each in own]),
            np.concatenate([each.plain for each in own]),
            np.concatenate([each.of_id for each in own], axis=1),
            np.concatenate([each.of_ood for each in own], axis=1),
            own[0].classes,
        )
        for own in zip(*columns)
    ]


def paired_by_seed(networks: Sequence[Sequence[SetUnits]], least: float = 0.0) -> Estimates:
    """Post-hoc detectors over networks that differ in their seed: images, classes and networks drawn anew.

    Parameters
    ----------
    networks : the units of every set, for each network; at least two.
    """
    if len(networks) < 2:
        raise DataError(CANNOT_SAY)
    whole = join_sets(average_networks(networks), least)
    by_seed = np.stack([join_sets(network).values for network in networks])
    parts = (*whole.parts, part_of_units("networks", by_seed))
    return Estimates(whole.values, parts, whole.plain, least)


def pooled_seed_spread(values: Sequence[FloatArray]) -> tuple[float, float]:
    """The standard deviation over seeds, pooled over methods, and its degrees of freedom.

    Parameters
    ----------
    values : for each method the values of its seeds; methods with one seed say nothing of the spread.
    """
    freedom = float(sum(len(own) - 1 for own in values))
    if freedom < 1.0:
        raise DataError(CANNOT_SAY)
    squares = sum((len(own) - 1) * float(np.var(own, ddof=1)) for own in values if len(own) > 1)
    return sqrt(squares / freedom), freedom


def compared_trainings(
    averaged: Estimates, values: Sequence[FloatArray], spread: tuple[float, float] | None = None
) -> Estimates:
    """Training methods, each with seeds of its own: the pooled spread of seeds is added to the noise of classes.

    Parameters
    ----------
    averaged : one column for each method, its units averaged over its seeds.
    values : the values of each method, seed by seed; every method needs two or more.
    spread : pooled standard deviation and degrees of freedom from a larger table, where there is one.
    """
    if any(len(own) < 2 for own in values):
        raise DataError(CANNOT_SAY)
    sd, freedom = spread or pooled_seed_spread(values)
    rows = np.diag([sd / sqrt(len(own)) for own in values])
    return Estimates(averaged.values, (*averaged.parts, Part("seeds", rows, freedom)), averaged.plain, averaged.least)
