"""A confidence interval that says how it was made."""

from dataclasses import dataclass

from oodscope.base.errors import DataError


@dataclass(frozen=True)
class Interval:
    """Where the value would lie for other images of the same sources, at confidence ``level``.

    Parameters
    ----------
    low, high : the ends; NaN where the method is ``"none"``.
    level : confidence, such as 0.95.
    method : ``"delong-logit"``, ``"exact-separation"``, ``"obuchowski-logit"``, ``"wilson"``,
        ``"t-3-runs"``, ``"bootstrap-bca-1000"``, ``"bootstrap-inverted-1000"``, ``"bootstrap-rows-1000"``,
        ``"bootstrap-clusters-1000"``, ``"bootstrap-exact"`` or ``"none"``.
    """

    low: float
    high: float
    level: float
    method: str


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1), such as 95 meant as a percentage."""
    if not 0.0 < level < 1.0:
        raise DataError(f"a confidence level lies between 0 and 1, such as 0.95; it is {level}")
