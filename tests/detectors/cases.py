"""Every detector as a case of a test, those that take long to fit marked so."""

from collections.abc import Iterable

import pytest

SLOW = {"opengan", "kpca"}
"""They take half of the time of all detectors together."""


NEEDS_RESIDUAL = {"core"}
"""They refuse a head that reads every feature, as one of more classes than features does."""


def each(names: Iterable[str]) -> list:
    """One case per detector."""
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in names]
