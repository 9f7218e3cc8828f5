"""A classifier from the user's own code, named as ``python:PACKAGE.MODULE:FUNCTION``."""

import sys
import traceback
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
    except ModuleNotFoundError as error:
        raise ModelError(f"{spec}: cannot import {module!r}: {first_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{spec}: cannot import {module!r}: {_raised(error)}") from error
    finally:
        sys.path.remove(here)
    function = getattr(home, name, None)
    if not callable(function):
        known = [each for each, value in vars(home).items() if callable(value)]
        raise ModelError(f"{spec}: {module!r} has no function {name!r}.{did_you_mean(name, known)}")
    return cast(Callable[[], Any], function)


def call_python(spec: str) -> nn.Module | Classifier:
    """What the function that ``spec`` names returns: a network, or a ``Classifier`` with its own transform."""
    function = find_python(spec)
    try:
        made = function()
    except (Exception, SystemExit) as error:
        raise ModelError(f"{spec}: {_raised(error)}") from error
    if not isinstance(made, (nn.Module, Classifier)):
        raise ModelError(f"{spec} returns a {type(made).__name__}; needed: a torch.nn.Module or an oodscope.Classifier")
    return made


def _raised(error: BaseException) -> str:
    """What the user's code raised, and where; the cause keeps the whole traceback for ``-v``."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<frozen")]
    place = f" in {own[-1].filename}, line {own[-1].lineno}" if own else ""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}{place}; -v shows the whole traceback"
