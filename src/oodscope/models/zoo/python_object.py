"""A classifier from the user's own code, named as ``python:PACKAGE.MODULE:FUNCTION``."""

from collections.abc import Callable
from typing import Any, cast

from torch import nn

from oodscope.base.errors import ModelError, OodscopeError, UsageError
from oodscope.base.own_code import PREFIX, find_own, raised
from oodscope.models.classifier.classifier import Classifier

__all__ = ["PREFIX", "call_python", "find_python"]


def find_python(spec: str) -> Callable[[], Any]:
    """The function that ``spec`` names, not called yet."""
    try:
        return cast(Callable[[], Any], find_own(spec))
    except UsageError:
        raise
    except OodscopeError as error:
        raise ModelError(str(error)) from error.__cause__


def call_python(spec: str) -> nn.Module | Classifier:
    """What the function that ``spec`` names returns: a network, or a ``Classifier`` with its own transform."""
    function = find_python(spec)
    try:
        made = function()
    except (Exception, SystemExit) as error:
        raise ModelError(f"{spec}: {raised(error, __file__)}") from error
    if not isinstance(made, (nn.Module, Classifier)):
        raise ModelError(
            f"--model {spec}: the function returned a {type(made).__name__}; it must return a torch.nn.Module, or an "
            "oodscope.Classifier that brings its transform"
        )
    return made
