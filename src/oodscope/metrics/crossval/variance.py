r"""Where the spread of a cross-validated number comes from: the ID images, the OOD classes, or the training seed.

A run is given by an ID split i, a draw of OOD classes j and a training seed s:

.. math:: y_{ijs} = \mu + A_i + B_j + (AB)_{ij} + S_{ijs},

all effects random and independent, :math:`S` the luck of the training. Half the squared difference of two runs has as
its expectation the variances of what they do not share. Only runs with different seeds are compared: whether two runs
with one seed share their luck depends on the training (without outlier exposure the OOD classes do not touch the
network, with it they do; one seed may start two networks alike), and so nothing need be assumed about it.

========================================  ===================================================================
two runs of different seeds differ in      half the mean squared difference estimates
========================================  ===================================================================
nothing else                               :math:`\sigma_S^2`
OOD classes                                :math:`\sigma_B^2 + \sigma_{AB}^2 + \sigma_S^2`
ID split                                   :math:`\sigma_A^2 + \sigma_{AB}^2 + \sigma_S^2`
both                                       :math:`\sigma_A^2 + \sigma_B^2 + \sigma_{AB}^2 + \sigma_S^2`
========================================  ===================================================================

Four moments, four unknowns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores


@dataclass(frozen=True)
class VarianceShares:
    """Four variance components, as the method of moments gives them; noise can make one negative.

    Parameters
    ----------
    id_sample : of another split of the ID images.
    ood_classes : of another draw of OOD classes.
    interaction : of this split together with these classes, beyond both.
    training_seed : of another seed.
    runs : how many runs they come from.
    """

    id_sample: float
    ood_classes: float
    interaction: float
    training_seed: float
    runs: int

    def shares(self) -> dict[str, float]:
        """Each component over their sum, negative ones counted as zero; all zero where nothing varies."""
        parts = {
            "id_sample": max(self.id_sample, 0.0),
            "ood_classes": max(self.ood_classes, 0.0),
            "interaction": max(self.interaction, 0.0),
            "training_seed": max(self.training_seed, 0.0),
        }
        total = sum(parts.values())
        return {name: part / total if total > 0.0 else 0.0 for name, part in parts.items()}


def variance_components(
    value: ArrayLike, id_draw: ArrayLike, ood_draw: ArrayLike, training_seed: ArrayLike
) -> VarianceShares:
    """The components from the runs of a crossed design, balanced or not.

    It needs at least two ID splits, two draws of classes and two seeds: among the runs of different seeds some that
    share the split, some that share the classes, some that share both and some that share neither.

    Parameters
    ----------
    value : one number per run.
    id_draw, ood_draw, training_seed : integers; equal numbers mean that the runs shared the split, classes or seed.
    """
    values = check_scores(value, "the values of the runs")
    draws = [np.asarray(each) for each in (id_draw, ood_draw, training_seed)]
    if any(each.shape != values.shape for each in draws):
        raise DataError("every run needs an ID draw, an OOD draw and a training seed")
    first, second = np.triu_indices(values.size, 1)
    half = (values[first] - values[second]) ** 2 / 2.0
    same_id, same_ood, same_seed = (each[first] == each[second] for each in draws)
    seed = _mean(half, same_id & same_ood & ~same_seed, "nothing else")
    classes = _mean(half, same_id & ~same_ood & ~same_seed, "OOD classes but not in the ID split")
    split = _mean(half, ~same_id & same_ood & ~same_seed, "the ID split but not in OOD classes")
    both = _mean(half, ~same_id & ~same_ood & ~same_seed, "ID split and OOD classes")
    id_sample, ood_classes = both - classes, both - split
    return VarianceShares(id_sample, ood_classes, both - id_sample - ood_classes - seed, seed, values.size)


def _mean(half: FloatArray, chosen: NDArray[np.bool_], words: str) -> float:
    if not chosen.any():
        raise DataError(
            f"the sources of variance cannot be distinguished: no two runs of different seeds differ in {words}"
        )
    return float(half[chosen].mean())
