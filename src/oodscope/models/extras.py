"""Libraries that only some users need, imported when they are."""

from importlib import import_module
from typing import Any

from oodscope.base.errors import ModelError


def require(module: str, extra: str, spec: str) -> Any:
    """The module, or one line that says which extra of this package brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelError(f"{spec} needs {module}, which is not installed: pip install 'oodscope[{extra}]'") from error
