"""Metric: a number with its name, its direction, its unit, its meaning and its computation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.ranking.walk import Positive
from oodscope.metrics.scores import FloatArray

Tuning = Literal["default", "id_only", "ood_val"]
"""How parameters were chosen. The three tracks are ranked apart, because each has seen different data."""

MEAN = "mean"
"""The ``set`` of a row that holds the unweighted mean over the sets of its group."""

Population = Literal["sampled", "exhaustive", "none"]
"""What the classes of an OOD set are: a sample of many more that could have been taken (CIFAR-100), all that there are
(digits), or nothing that the set is divided into (OpenImage-O). Only sampled classes are drawn anew when a statement
is about other OOD classes; the other sets add the noise of their images."""

Unit = Literal["percent", "count", "number"]
"""How people read a value: a share in percent, a count of images, or a plain number."""

Columns = Mapping[str, NDArray[Any]]
"""Plain columns of equal length, one entry per image: ``score`` (larger = more OOD), ``is_ood``, ``correct`` (the
classifier's prediction is right; false for OOD images), ``image`` (number of the image), ``ood_class`` (its class in
its own set, -1 without one), ``network`` (number of the network that gave the score)."""

Weighted = Callable[[Columns, FloatArray], float]
"""A metric as a functional of weighted images: of the columns, and of one weight >= 0 per image. Weights of one give
the metric itself, counts of a resample a bootstrap replicate, weights constant within a class other classes."""


@dataclass(frozen=True)
class Metric:
    """One metric, the same for computation, tables, comparisons and pages.

    Parameters
    ----------
    name : as in measurements; names carry the positive class (``fpr95_id_positive``).
    label : how tables call it.
    higher_is_better : direction of a good detector, or of a search or classifier that can be trusted.
    description : one line for a reader who has not met the name.
    unit : how people read its values.
    positive : the class from whose side a ranking is walked; ``None`` where there is no ranking.
    version : of its numbers; a change after which the same scores give others is a new version.
    sample : what ``of`` is computed from, such as :class:`Walk`, :class:`Decisions` or :class:`Acceptance`.
    of : the metric of a sample, vectorised over bootstrap replicates; ``None`` if it is measured elsewhere.
    value : the metric as a weighted functional of plain columns: enough by itself for intervals and comparisons.

    Examples
    --------
    >>> def gap(columns, weights):
    ...     score, ood = columns["score"], columns["is_ood"]
    ...     return np.average(score[ood], weights=weights[ood]) - np.average(score[~ood], weights=weights[~ood])
    >>> oods.Metric("gap", "Gap", True, "mean OOD score minus mean ID score", "number", value=gap).heading
    'Gap ↑'
    """

    name: str
    label: str
    higher_is_better: bool
    description: str
    unit: Unit = "percent"
    positive: Positive | None = None
    version: int = 1
    sample: type | None = None
    of: Callable[[Any], FloatArray] | None = None
    value: Weighted | None = None

    @property
    def heading(self) -> str:
        """The label with its direction: ``AUROC ↑``."""
        return f"{self.label} {'↑' if self.higher_is_better else '↓'}"

    @property
    def explanation(self) -> str:
        """The metric in words, for the line below a table."""
        direction = "higher is better" if self.higher_is_better else "lower is better"
        unit = ", in percent" if self.unit == "percent" else ""
        return f"{self.label}{unit}: {self.description}; {direction}."


def columns_of(
    id_scores: NDArray[np.float64],
    ood_scores: NDArray[np.float64],
    *,
    id_correct: NDArray[np.bool_] | None = None,
    ood_class: NDArray[np.int64] | None = None,
) -> Columns:
    """The columns of one ID and one OOD sample, ID images first; what is not known is filled with -1 or ``False``."""
    n_id, n_ood = len(id_scores), len(ood_scores)
    return {
        "score": np.concatenate([id_scores, ood_scores]).astype(np.float64),
        "is_ood": np.repeat([False, True], [n_id, n_ood]),
        "correct": np.append(
            np.zeros(n_id, dtype=bool) if id_correct is None else id_correct, np.zeros(n_ood, dtype=bool)
        ),
        "image": np.arange(n_id + n_ood),
        "ood_class": np.append(np.full(n_id, -1), np.full(n_ood, -1) if ood_class is None else ood_class),
        "network": np.zeros(n_id + n_ood, dtype=np.int64),
    }
