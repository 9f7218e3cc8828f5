"""Attacked: a detector under attack, with what it says of the in-distribution images."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from oodscope.data import ImageSet
from oodscope.detectors.function_scorer import TensorScorer
from oodscope.execution import Advance
from oodscope.metrics.scores import FloatArray, check_scores
from oodscope.models.borrowing import full_precision
from oodscope.protocols.adversarial.frame import Frame


@dataclass(frozen=True)
class Attacked:
    """A scorer and its scores of the ID images, in float32 and from the same pixels that a search starts from.

    Parameters
    ----------
    id_val : they set the scale of its energy.
    id_test : what outliers are ranked among.
    seconds : that it took to score ``id_test``.
    """

    name: str
    scorer: TensorScorer
    id_val: FloatArray
    id_test: FloatArray
    seconds: float

    @property
    def microseconds_per_image(self) -> float:
        """Of one pass over ID test images, network included."""
        return 1e6 * self.seconds / self.id_test.size

    def standardised(self, scores: FloatArray) -> FloatArray:
        """Scores in the unit of an attack: 0 is the mean of ID validation, 1 their standard deviation."""
        return (scores - self.id_val.mean()) / max(float(self.id_val.std()), 1e-12)

    def score(self, batches: Iterable[Tensor]) -> FloatArray:
        """What it says of pixels; NaN and infinity are refused by name."""
        return _scores(self.name, self.scorer, batches)


def aim(name: str, scorer: TensorScorer, frame: Frame, id_val: ImageSet, id_test: ImageSet, advance: Advance) -> Attacked:
    """Score the ID images once. Validation images come first, so that the time of the others holds no warming up."""
    val = _scores(name, scorer, frame.batches(id_val))
    advance(len(id_val))
    test, seconds = [], 0.0
    for pixels in frame.batches(id_test):
        on_device = pixels.to(scorer.device)
        started = perf_counter()
        test.append(_scores(name, scorer, [on_device]))
        seconds += perf_counter() - started
        advance(len(pixels))
    return Attacked(name, scorer, val, np.concatenate(test), seconds)


def _scores(name: str, scorer: TensorScorer, batches: Iterable[Tensor]) -> FloatArray:
    # as a search scores its best states: without the shortcuts of tensor cores
    with full_precision(scorer.device), torch.no_grad():
        found = [scorer.score_tensor(pixels.to(scorer.device)).double().cpu().numpy() for pixels in batches]
    return check_scores(np.concatenate(found), f"{name}: scores")
