"""A classifier from the user's own code, named as ``python:PACKAGE.MODULE:FUNCTION``."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from torch import nn

from oodscope.base.errors import ModelError, did_you_mean
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import first_line

PREFIX = "python:"


def find_python(spec: str) -> Callable[[], Any]:
    """The function that ``spec`` names, not called yet.

    Its module is imported from where Python looks and from the current folder. This runs the user's code, and says so
    by its name; nothing else in the zoo does.
    """
    module, _, name = spec.removeprefix(PREFIX).partition(":")
    if not (module and name):
        raise ModelError(f"{spec}: say python:PACKAGE.MODULE:FUNCTION")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        home = import_module(module)
    except ImportError as error:
        raise ModelError(f"{spec}: cannot import {module!r}: {first_line(error)}") from error
    finally:
        sys.path.remove(here)
    function = getattr(home, name, None)
    if not callable(function):
        known = [each for each, value in vars(home).items() if callable(value)]
        raise ModelError(f"{spec}: {module!r} has no function {name!r}.{did_you_mean(name, known)}")
    return cast(Callable[[], Any], function)


def call_python(spec: str) -> nn.Module | Classifier:
    """What the function that ``spec`` names returns: a network, or a ``Classifier`` with its own transform."""
    made = find_python(spec)()
    if not isinstance(made, (nn.Module, Classifier)):
        raise ModelError(f"{spec} returns a {type(made).__name__}; needed: a torch.nn.Module or an oodscope.Classifier")
    return made
