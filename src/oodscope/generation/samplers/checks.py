"""Settings of samplers that make no sense, said in one line."""

import math
from typing import get_args

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.generation.domains import Boundary


def check_positive(sampler: str, **settings: float) -> None:
    """Refuse settings that are not positive numbers."""
    for name, value in settings.items():
        if not (value > 0 and math.isfinite(value)):
            raise OodscopeError(f"{sampler}: {name} must be a positive number, not {value}")


def check_boundary(boundary: str) -> None:
    """Refuse a boundary that nobody knows."""
    if boundary not in get_args(Boundary):
        raise UnknownNameError("boundary", boundary, get_args(Boundary))
