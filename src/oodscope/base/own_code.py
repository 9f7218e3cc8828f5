"""Functions and classes of the user's own code, named as ``python:PACKAGE.MODULE:NAME``."""

import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from oodscope.base.errors import OodscopeError, UsageError, did_you_mean

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
        raise UsageError(
            f"{spec}: write python:MODULE:{what.upper()}, such as python:mynet:build for {what} build of mynet.py"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UsageError(f"{spec}: cannot import {module!r}: {said} (searched: {here} and the environment)") from error
    except (Exception, SystemExit) as error:
        raise OodscopeError(f"{spec}: cannot import {module!r}: {raised(error, __file__)}") from error
    finally:
        sys.path.remove(here)
    found = getattr(home, name, None)
    if not callable(found):
        known = [each for each, value in vars(home).items() if callable(value)]
        raise UsageError(f"{spec}: {module!r} has no {what} {name!r}.{did_you_mean(name, known)}")
    return found


def raised(error: BaseException, caller: str) -> str:
    """What the user's code raised, and where; the cause keeps the whole traceback for ``-v``.

    Parameters
    ----------
    caller : the file that called it, which is not where it went wrong.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != caller and not frame.filename.startswith("<frozen")]
    place = f" in {own[-1].filename}, line {own[-1].lineno}" if own else ""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}{place}; -v shows the whole traceback"
