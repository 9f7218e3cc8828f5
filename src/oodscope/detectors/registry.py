"""Detectors by name."""

import inspect
from typing import Any

from oodscope.base.errors import DetectorError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.detectors.base import Detector
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import Rectifier

DETECTORS: Registry[Detector] = Registry("detector", Detector)  # type: ignore[type-abstract]


def create_detector(name: str, **params: Any) -> Detector:
    """A detector by its registry name, such as ``knn``, or a rectifier with a logit score: ``react+msp``.

    Parameters are those of the class: ``create_detector("knn", k=10)``.

    Examples
    --------
    >>> oods.create_detector("knn", k=10).id
    'knn(k=10)'
    """
    first, plus, second = name.partition("+")
    cls = DETECTORS.get(first.strip())
    if plus:
        score = create_detector(second.strip())
        if not (issubclass(cls, Rectifier) and isinstance(score, LogitScore)):
            raise DetectorError(
                f"cannot combine {name!r}: the part before '+' must be a rectifier (such as react), "
                "the part after it a logit score (such as msp)"
            )
        params = {**params, "logit_score": score}
    known = list(inspect.signature(cls).parameters)
    for key in params:
        if key not in known:
            hint = did_you_mean(key, known) or f" It has: {', '.join(known) or 'none'}"
            raise DetectorError(f"{first}: no parameter {key!r}.{hint}")
    return cls(**params)
