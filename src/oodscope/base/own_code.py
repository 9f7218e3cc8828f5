"""Functions and classes of the user's own code, named as ``python:PACKAGE.MODULE:NAME``."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from oodscope.base.errors import OodscopeError, did_you_mean

PREFIX = "python:"


def find_own(spec: str, what: str = "function") -> Any:
    """The callable that ``spec`` names, not called yet.

    Its module is imported from where Python looks and from the current folder. This runs the user's code, and says so
    by its name; nothing else is imported because a text names it.

    Parameters
    ----------
    what : is wanted, ``function`` or ``class``, for messages.
    """
    module, _, name = spec.removeprefix(PREFIX).partition(":")
    if not (module and name):
        raise OodscopeError(
            f"{spec}: write python:MODULE:{what.upper()}, such as python:mynet:build for {what} build of mynet.py"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        home = import_module(module)
    except ImportError as error:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise OodscopeError(f"{spec}: cannot import {module!r} from {here} or the environment: {said}") from error
    finally:
        sys.path.remove(here)
    found = getattr(home, name, None)
    if not callable(found):
        known = [each for each, value in vars(home).items() if callable(value)]
        raise OodscopeError(f"{spec}: {module!r} has no {what} {name!r}.{did_you_mean(name, known)}")
    return found
