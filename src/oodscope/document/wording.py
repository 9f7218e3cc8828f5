"""How tables and pages call metrics, tuning tracks and numbers: said once, the same everywhere."""

from math import ceil, floor

from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import Tuning, Unit

TRACKS: dict[Tuning, str] = {
    "default": "default parameters",
    "id_only": "tuned on ID data only",
    "ood_val": "tuned on OOD validation data",
}

CLOSE = "†"
"""Marks a value whose interval overlaps that of the best one."""

EXPOSED = "‡"
"""Marks a value measured on images of which the network has met some before."""

DOUBTED = "*"
"""Marks a value that there are reasons not to trust, such as a search that stopped too early."""


def label(metric: str) -> str:
    """How tables call a metric; a name that is not a metric stands for itself."""
    return METRICS[metric].label if metric in METRICS else metric


def higher_is_better(metric: str) -> bool:
    """Direction of a good detector."""
    return METRICS[metric].higher_is_better


def heading(metric: str) -> str:
    """The label with its direction: ``AUROC ↑``."""
    return METRICS[metric].heading


def explanation(metric: str) -> str:
    """The metric in words, for the line below a table."""
    return METRICS[metric].explanation


def unit_of(metric: str) -> Unit:
    """How people read its values; all but a few are shares, shown in percent."""
    return METRICS[metric].unit if metric in METRICS else "percent"


def percent(value: float) -> str:
    """``0.88031`` as ``88.03``."""
    return f"{100 * value:.2f}"


def duration(seconds: float) -> str:
    """``42 s``, ``7 min`` or ``3.1 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shown(value: float, unit: Unit) -> str:
    """A value as people read it: ``88.03`` (percent), ``1,609`` (count), ``-2.41`` (number)."""
    if unit == "percent":
        return percent(value)
    return f"{value:,.0f}" if unit == "count" else f"{value:.3g}"


def places(rank: tuple[int, int] | None) -> str:
    """Best and worst rank as people read them: ``1–3``, ``2`` if there is no doubt; empty without one."""
    if rank is None:
        return ""
    low, high = rank
    return str(low) if low == high else f"{low}–{high}"


def span(low: float, high: float) -> str:
    """The ends of an interval in percent, one decimal, joined by a dash: ``87.2–88.8``.

    Both ends, because the interval of a rate near 0 or 1 is lopsided and a half-width would misstate it.
    Rounded outwards, so that the interval shown never excludes a value that it holds.
    """
    return f"{floor(1000 * low) / 10:.1f}–{ceil(1000 * high) / 10:.1f}"
