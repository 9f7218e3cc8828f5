"""Rectifier: detectors that change features on their way to the head and score the new logits."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import column_by_column, on_host, precise
from oodscope.detectors.methods.ebo import EBO
from oodscope.models.classifier.head import Head


class Rectifier(Detector):
    """Features are rectified, pass the head again, and any logit score judges the result.

    Subclasses give ``_rectify`` or, if they change the head instead, ``_logits``. They take ``logit_score`` as a
    parameter; ``create_detector("react+msp")`` fills it by name. ``None`` means the energy score, which the
    papers use.

    Examples
    --------
    >>> oods.create_detector("react+msp").id
    'react+msp'
    """

    needs: ClassVar[Needs] = Needs.FEATURES | Needs.HEAD
    cost: ClassVar[Cost] = Cost.HEAD
    logit_score: LogitScore | None

    @property
    def id(self) -> str:
        if self.logit_score is None:
            return super().id
        return f"{clone(self).set_params(logit_score=None).id}+{self.logit_score.id}"

    def _rectify(self, features: Tensor) -> Tensor:
        """The features that the head shall see."""
        return features

    def _score(self, batch: Activations) -> Tensor:
        assert batch.head is not None, "checked before scoring"
        return (self.logit_score or EBO()).of_logits(self._logits(batch.features, batch.head))

    def _logits(self, features: Tensor, head: Head) -> Tensor:
        return head.logits(self._rectify(features))


LARGE = 1e6
"""Factors from here on may carry a float32 product beyond its range."""


def kept(width: int, percentile: float) -> int:
    """How many of ``width`` features lie above the percentile; one at least."""
    return max(1, width - round(width * percentile / 100))


def top_values(features: Tensor, k: int) -> Tensor:
    """The ``k`` largest values of each row, largest first; all of them where there are fewer."""
    k = min(k, features.shape[1])
    if not on_host(features):
        return features.topk(k, dim=1).values
    # NumPy sorts whole rows with vector instructions: several times faster than torch.topk, and than a partition
    # where many features are zero. It does so without Python's lock, so threads help
    ordered = features.numpy().copy()
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda rows: rows.sort(axis=1), np.array_split(ordered, threads)))
    return torch.from_numpy(ordered[:, -k:]).flip(1)


def top_mask(features: Tensor, values: Tensor, k: int) -> Tensor:
    """1 at the ``k`` largest of each row, 0 elsewhere; among equals, the earlier ones.

    Exactly k, and the same on every device: ``torch.topk`` leaves open which of equal values it takes.

    Parameters
    ----------
    values : at least the ``k + 1`` largest of each row, from ``top_values``.
    """
    threshold = values[:, k - 1 : k]
    if not on_host(features):
        return _crowded_mask(features, threshold, k)
    # numbers, not truth values: products with these are several times faster
    keep = torch.ge(features, threshold, out=torch.empty_like(features))
    if k == features.shape[1]:
        return keep
    crowded = values[:, k] == threshold[:, 0]
    if crowded.any():
        keep[crowded] = _crowded_mask(features[crowded], threshold[crowded], k)
    return keep


def _crowded_mask(features: Tensor, threshold: Tensor, k: int) -> Tensor:
    """``top_mask`` of rows in which more than ``k`` values may reach the threshold."""
    above, tied = features > threshold, features == threshold
    places = k - above.sum(dim=1, keepdim=True)
    return (above | (tied & (tied.cumsum(dim=1) <= places))).to(features.dtype)


def ratio(total: Tensor, part: Tensor) -> Tensor:
    """What the whole is to its largest part; 1 where both are zero."""
    return torch.where(part > 0, total / part, torch.ones_like(part))


class TopShare(Rectifier):
    r"""Rectifiers that treat each image by its own largest features.

    The logits are :math:`z = a\,W\tilde h + b`, with a factor :math:`a` from the sums of all and of the
    largest features. Subclasses give ``_factor`` and, if they prune, :math:`\tilde h` as ``_shape``. The factor
    stays outside the product: its exponential may be too large for float32.
    """

    prunes: ClassVar[bool] = True
    signed_features_ok = False
    grid = {"percentile": (65, 70, 75, 80, 85, 90, 95)}
    percentile: float

    @abstractmethod
    def _factor(self, total: Tensor, top: Tensor, k: int) -> Tensor:
        """:math:`a` per row, from the sum of all features and the sum of the ``k`` largest."""

    def _shape(self, features: Tensor, keep: Tensor) -> Tensor:
        r""":math:`\tilde h`, where ``keep`` is 1 at the largest features and 0 elsewhere; it may be overwritten."""
        return keep.mul_(features)

    def _logits(self, features: Tensor, head: Head) -> Tensor:
        return next(self._logits_at([self.percentile], features, head))

    def _logits_at(self, percentiles: Sequence[float], features: Tensor, head: Head) -> Iterator[Tensor]:
        """The logits at each percentile, from one search for the largest features."""
        for value in percentiles:
            if not 0 <= value < 100:
                raise DetectorError(f"{self.name}: percentile must lie in [0, 100), not {value}")
        head = head.to(features.device)
        total = precise(features).sum(dim=1)
        ks = [kept(features.shape[1], value) for value in percentiles]
        values = top_values(features, max(ks) + 1)
        plain = None if self.prunes else features @ head.weight.T
        for k in ks:
            factor = self._factor(total, precise(values[:, :k]).sum(dim=1), k).unsqueeze(1)
            product = plain
            if product is None:
                product = self._shape(features, top_mask(features, values, k)) @ head.weight.T
            # the product has the digits of float32 and needs float64 only for its range
            form = product.dtype if on_host(factor) and factor.amax() < LARGE else factor.dtype
            yield torch.addcmul(head.bias.to(form), product.to(form), factor.to(form))

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All percentiles from one search for the largest features."""
        percentiles = [candidate["percentile"] for candidate in candidates]
        judge = self.logit_score or EBO()

        def columns(chunk: Activations) -> Tensor:
            assert chunk.head is not None, "checked before scoring"
            logits = self._logits_at(percentiles, chunk.features, chunk.head)
            return torch.stack([judge.of_logits(each) for each in logits], dim=1)

        for part in judged:
            self._check(part)
        yield from column_by_column(judged, columns, self.device)
