r"""Keep or reject: what one threshold does to images that a classifier gets right or wrong.

Human-centric evaluation (Zhu et al., arXiv 2211.16778): a detector should keep what the classifier gets right and
reject the rest, whether the image is OOD or merely hard. Larger score = more OOD; reject iff
:math:`s \ge \gamma`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores

Correct = NDArray[np.bool_]


@dataclass(frozen=True)
class Decisions:
    r"""Counts of the four outcomes; arrays where there are several thresholds or bootstrap replicates.

    .. math:: \mathrm{DER} = \frac{FN + FP}{n} = a \cdot \mathrm{FRR} + (1 - a) \cdot \mathrm{FAR}

    Parameters
    ----------
    kept_correct, rejected_correct : images that the classifier gets right; rejecting one is a false rejection (FN).
    kept_wrong, rejected_wrong : images that it gets wrong, OOD ones included; keeping one is a false
        acceptance (FP).
    """

    kept_correct: FloatArray
    rejected_correct: FloatArray
    kept_wrong: FloatArray
    rejected_wrong: FloatArray

    @property
    def n(self) -> FloatArray:
        """All images."""
        return self.kept_correct + self.rejected_correct + self.kept_wrong + self.rejected_wrong

    @property
    def accuracy(self) -> FloatArray:
        """:math:`a`: the share that the classifier gets right."""
        return (self.kept_correct + self.rejected_correct) / self.n

    @property
    def der(self) -> FloatArray:
        """Detection error rate: the share of images on which the decision is not what a human expects."""
        return (self.rejected_correct + self.kept_wrong) / self.n

    @property
    def frr(self) -> FloatArray:
        """Share of the correct images that are rejected; NaN where none is correct."""
        return _share(self.rejected_correct, self.kept_correct)

    @property
    def far(self) -> FloatArray:
        """Share of the wrong or OOD images that are kept; NaN where there is none."""
        return _share(self.kept_wrong, self.rejected_wrong)

    def cost(self, false_rejection: float, false_acceptance: float) -> FloatArray:
        """Mean cost of an image, given the price of either mistake; with prices of 1 it is the DER."""
        return (false_rejection * self.rejected_correct + false_acceptance * self.kept_wrong) / self.n

    def resampled(self, rng: np.random.Generator) -> "Decisions":
        """One bootstrap replicate per entry: n images drawn from the n fall on the four outcomes multinomially."""
        cells = np.stack([self.kept_correct, self.rejected_correct, self.kept_wrong, self.rejected_wrong], axis=-1)
        n = int(np.ravel(self.n)[0])
        drawn = rng.multinomial(n, cells / n).astype(np.float64)
        return Decisions(*np.moveaxis(drawn, -1, 0))


class Rejection:
    """A labelled sample, sorted once, on which any threshold can be tried.

    Parameters
    ----------
    scores : one per image, larger = more OOD.
    correct : whether the classifier's prediction is right; false throughout for an OOD set.
    """

    def __init__(self, scores: ArrayLike, correct: ArrayLike) -> None:
        checked = check_scores(scores, "scores")
        right = check_correct(correct, checked.size)
        self._correct = np.sort(checked[right])
        self._wrong = np.sort(checked[~right])

    def at(self, threshold: ArrayLike) -> Decisions:
        """What happens at a threshold, or at each of several."""
        gamma = np.asarray(threshold, dtype=np.float64)
        kept_correct = np.asarray(np.searchsorted(self._correct, gamma, side="left"), dtype=np.float64)
        kept_wrong = np.asarray(np.searchsorted(self._wrong, gamma, side="left"), dtype=np.float64)
        return Decisions(kept_correct, self._correct.size - kept_correct, kept_wrong, self._wrong.size - kept_wrong)

    def between(self, low: float, high: float) -> Decisions:
        """What happens at every threshold from ``low`` to ``high`` that matters, both included."""
        distinct = np.unique(np.concatenate([self._correct, self._wrong]))
        inside = distinct[(distinct > low) & (distinct < high)]
        return self.at(np.concatenate([[low], inside, [high]]))

    def accept_all(self) -> Decisions:
        """No detector: the DER is the error rate of the classifier."""
        return self.at(np.inf)

    def reject_all(self) -> Decisions:
        """No classifier: the DER is the accuracy."""
        return self.at(-np.inf)

    def curve(self) -> tuple[FloatArray, Decisions]:
        """Every threshold that matters, from rejecting all to accepting all, with what happens there."""
        distinct = np.unique(np.concatenate([self._correct, self._wrong]))
        thresholds = np.append(distinct, np.inf)
        return thresholds, self.at(thresholds)


def der_over_prevalence(id_test: Decisions, ood: Decisions, prevalence: ArrayLike) -> FloatArray:
    r"""DER of a stream in which the share :math:`\pi` of images is OOD.

    .. math:: \mathrm{DER}(\pi) = (1 - \pi)\, \mathrm{DER}_\text{ID} + \pi\, \mathrm{DER}_\text{OOD}

    Test sets hold as many OOD images as somebody collected; what a detector is worth in use depends on how many
    there will be.

    Parameters
    ----------
    id_test, ood : decisions at one threshold, on images of the classifier's classes and on an OOD set.
    prevalence : one or several shares in [0, 1].
    """
    share = np.asarray(prevalence, dtype=np.float64)
    if not ((share >= 0) & (share <= 1)).all():
        raise DataError(f"a prevalence lies between 0 and 1; it is {share}")
    return np.asarray((1.0 - share) * id_test.der + share * ood.der)


def check_correct(correct: ArrayLike, n: int) -> Correct:
    """One truth value per score."""
    array = np.asarray(correct)
    if array.dtype != np.bool_ or array.shape != (n,):
        raise DataError(f"correct must hold {n} truth values, one per score; it is {array.dtype} {array.shape}")
    return array


def _share(part: FloatArray, rest: FloatArray) -> FloatArray:
    whole = np.asarray(part + rest)
    return np.asarray(np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0))
