"""Whether found images still show what they are made of: an independent judge of the source classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.generation.search.result import SearchResult
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.metrics.interval import Interval, wilson_interval
from oodscope.metrics.scores import FloatArray
from oodscope.runs.attack.attacked import BATCH, found_images

ACCEPTED = 0.95
"""Share of real source images that a judge accepts, by its threshold."""

LEAST = 0.8
"""Share of real source images that a judge must recognise before its word on found ones counts."""

TRUNCATIONS = (0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Validity:
    """A judge with the threshold below which it accepts an image as one of the source classes.

    A generator also draws its own failures, and a detector that takes a smear for a car has not failed at digits. The
    judge is a classifier of the *source* classes (digits, for SVHN) that no part of the attack has seen; it accepts an
    image whose score is not above that of 95 % of real source images. 95 % is therefore the most that can be expected.

    Parameters
    ----------
    judge : scores, larger = less like any source class: a classifier of the source classes with ``msp``.
    threshold : the largest score that it accepts.
    recognised : the share of real source images whose class it names; None where that cannot be asked.
    """

    judge: TensorScorer
    threshold: float
    recognised: "Share | None" = None

    @classmethod
    def of(
        cls,
        judge: TensorScorer,
        real: Tensor,
        accepted: float = ACCEPTED,
        labels: NDArray[np.int64] | None = None,
    ) -> "Validity":
        """With the threshold that accepts this share of real source images ``[N, C, H, W]`` in [0, 1].

        Parameters
        ----------
        labels : of these images, in the classes of the judge.
        """
        if len(real) < 20:
            raise DataError(f"a judge needs 20 real source images or more for its threshold, got {len(real)}")
        threshold = float(np.quantile(_scores(judge, torch.split(real, BATCH)), accepted))
        return cls(judge, threshold, None if labels is None else _recognised(judge, real, labels))

    @property
    def doubt(self) -> str | None:
        """Why its word does not count, in words; None if it does. One that knows a single class accepts all images."""
        if self.recognised is None or self.recognised.value >= LEAST:
            return None
        return (
            f"the judge recognises {100 * self.recognised.value:.1f} % of {self.recognised.n:,} source images, less "
            f"than {100 * LEAST:.0f} %: it cannot say which found images are valid"
        )

    def accepts(self, batches: Sequence[Tensor] | Iterator[Tensor]) -> "Share":
        """The share of images that it takes for one of the source classes."""
        scores = _scores(self.judge, batches)
        return Share.of(int((scores <= self.threshold).sum()), len(scores))

    def of_search(self, result: SearchResult, variation: Variation, sources: Tensor) -> "Share":
        """The share of what a search found."""
        device = self.judge.device
        return self.accepts(found_images(variation.to(device), result.points.to(device), sources))


@dataclass(frozen=True)
class Share:
    """A share of images with Wilson's interval."""

    value: float
    interval: Interval
    n: int

    @classmethod
    def of(cls, hits: int, n: int, level: float = 0.95) -> "Share":
        """``hits`` of ``n``."""
        return cls(hits / n, wilson_interval(hits, n, level), n)


def truncation_curve(
    variation: GanVariation,
    validity: Validity,
    count: int = 1000,
    seed: int = 0,
    truncations: Sequence[float] = TRUNCATIONS,
) -> dict[float, Share]:
    """The share of a generator's plain draws that the judge accepts, by truncation: what no search has touched."""
    device = validity.judge.device
    points = variation.domain.draw(count, torch.Generator().manual_seed(seed)).to(device)
    shares = {}
    for each in truncations:
        drawn = variation.truncated(each).to(device)
        shares[each] = validity.accepts(found_images(drawn, points, torch.empty(0)))
    return shares


def _recognised(judge: TensorScorer, real: Tensor, labels: NDArray[np.int64]) -> "Share | None":
    if not isinstance(judge, Scorer) or not 0 <= labels.min() <= labels.max() < judge.classifier.num_classes:
        return None
    named = np.array([each.class_index for each in judge.predict(real)])
    return Share.of(int((named == labels).sum()), len(labels))


def _scores(judge: TensorScorer, batches: Sequence[Tensor] | Iterator[Tensor]) -> FloatArray:
    with torch.no_grad():
        parts = [judge.score_tensor(each.to(judge.device)).double().cpu().numpy() for each in batches]
    return np.concatenate(parts)
