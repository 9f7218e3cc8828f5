"""Estimator: scikit-learn's contract of parameters, kept without importing scikit-learn.

``sklearn.base`` brings ``scipy.stats`` and pandas along, more than a second before the first detector exists. The
contract itself is small: parameters are those of the constructor and live under their own names, ``get_params`` and
``set_params`` read and write them, also inside an estimator that is a parameter (``logit_score__temperature``).
``sklearn.base.clone``, pipelines and searches ask for nothing else.
"""

import copy
import inspect
from functools import cache
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Estimator:
    """Whatever is described by the parameters of its constructor."""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The parameters of its constructor, sorted."""
        return _names(cls)  # type: ignore[arg-type]  # a class can be hashed, whatever its instances can

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep``, those of estimators among them too, as ``parameter__name``."""
        params: dict[str, Any] = {}
        for name in self.parameter_names():
            value = params[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name, ``parameter__name`` inside an estimator; an unknown one is a ``ValueError``."""
        own = self.get_params(deep=False)
        for key, value in params.items():
            name, inside, rest = key.partition("__")
            if name not in own:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has: {', '.join(own) or 'none'}")
            if inside:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self


def clone(estimator: T) -> T:
    """A new one with the same parameters and nothing fitted; what is not an estimator is copied."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return copy.deepcopy(estimator)
    params = {name: clone(value) for name, value in estimator.get_params(deep=False).items()}
    return type(estimator)(**params)


@cache
def _names(cls: type[Any]) -> list[str]:
    return sorted(inspect.signature(cls).parameters)
