"""Detectors by name."""

import inspect
from typing import Any

from oodscope.base.errors import DetectorError, UsageError, did_you_mean
from oodscope.base.own_code import PREFIX, find_own
from oodscope.base.registry import Registry
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import Rectifier

DETECTORS: Registry[Detector] = Registry("detector", Detector)  # type: ignore[type-abstract]


def create_detector(name: str, **params: Any) -> Detector:
    """A detector by its registry name, such as ``knn``, or a rectifier with a logit score: ``react+msp``.

    Only what is registered is made, because names also come from files of others. Parameters are those of the
    class: ``create_detector("knn", k=10)``.

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
            raise UsageError(
                f"cannot combine {name!r}: the part before '+' must be a rectifier (such as react), "
                "the part after it a logit score (such as msp)"
            )
        params = {**params, "logit_score": score}
    known = list(inspect.signature(cls).parameters)
    for key in params:
        if key not in known:
            hint = did_you_mean(key, known) or f" It has: {', '.join(known) or 'none'}"
            raise UsageError(f"{first}: no parameter {key!r}.{hint}")
    return cls(**params)


def requested_detector(name: str, **params: Any) -> Detector:
    """A detector that the user asks for: by registry name, or as ``python:MODULE:CLASS``, a class of their own.

    The class is found from the working folder too; tables show its ``name``. Importing it runs code, so names that come
    from files of others never come here.
    """
    first, plus, second = name.partition("+")
    if first.strip().startswith(PREFIX):
        name = f"{_own(first.strip()).name}{plus}{second}"
    return create_detector(name, **params)


def _own(spec: str) -> type[Detector]:
    """The class of the user that ``spec`` names, registered by its name so that it can be saved and compared."""
    cls = find_own(spec, "class")
    if not (isinstance(cls, type) and issubclass(cls, Detector)):
        raise DetectorError(f"{spec}: it must be a subclass of oodscope.Detector (or LogitScore, Rectifier)")
    if missing := _missing(cls):
        raise DetectorError(f"{spec}: the class lacks {'; '.join(missing)}")
    if cls.name in DETECTORS and cls.name not in _OWN:
        raise DetectorError(f"{spec}: its name {cls.name!r} is taken; give the class another name")
    _OWN[cls.name] = spec
    return DETECTORS.register(cls.name, cls)


def _missing(cls: type[Detector]) -> list[str]:
    """What a class still needs to be a detector, everything at once."""
    missing = []
    if not isinstance(getattr(cls, "name", None), str):
        missing.append(f"a name for tables: name = {cls.__name__.lower()!r}")
    if not isinstance(getattr(cls, "needs", None), Needs):
        missing.append(
            "what it needs: needs = oodscope.Needs.LOGITS, or FEATURES, or both with '|'; | TRAIN to be fitted"
        )
    takes = len(inspect.signature(cls._score).parameters)
    if "_score" in cls.__abstractmethods__ or takes != 2:
        missing.append(
            "_score(self, batch), which returns a tensor with one score per row, larger = more OOD, "
            "from batch.logits and batch.features"
        )
    return missing


_OWN: dict[str, str] = {}
"""Names of the user's own classes, and where each was found."""
