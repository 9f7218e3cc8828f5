"""How tables and pages call metrics, tuning tracks and numbers: said once, the same everywhere."""

from math import ceil, floor

from oodscope.base.errors import UnknownNameError
from oodscope.metrics.catalog import (
    ATTACK_METRICS,
    METRICS,
    REJECTION_METRICS,
    AttackMetric,
    MetricInfo,
    RejectionMetric,
    Tuning,
    Unit,
)

LABELS = {
    "auroc": "AUROC",
    "aupr_in": "AUPR (ID positive)",
    "aupr_out": "AUPR (OOD positive)",
    "aupr_in_prevalence50": "AUPR (ID positive) at 50 % ID",
    "aupr_out_prevalence50": "AUPR (OOD positive) at 50 % OOD",
    "aupr_out_prevalence10": "AUPR (OOD positive) at 10 % OOD",
    "fpr95_ood_positive": "FPR95 (OOD positive)",
    "fpr95_id_positive": "FPR95 (ID positive)",
    "tpr5_ood_positive": "TPR at 5 % FPR (OOD positive)",
    "tpr5_id_positive": "TPR at 5 % FPR (ID positive)",
    **{name: metric.label for name, metric in REJECTION_METRICS.items()},
    **{name: metric.label for name, metric in ATTACK_METRICS.items()},
}

_HEADLINES = {"human_centric": ("der95_val_correct", "augrc"), "adversarial": ("auroc", "min_rank")}
"""Protocols whose first question is not one of ranking."""

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


def headline_metrics(protocol: str) -> tuple[str, ...]:
    """What a reader of this protocol looks at first; the first of them ranks the detectors."""
    return _HEADLINES.get(protocol, ("auroc",))


def higher_is_better(metric: str) -> bool:
    """Direction of a good detector."""
    return _described(metric).higher_is_better


def heading(metric: str) -> str:
    """The name with its direction: ``AUROC ↑``."""
    return f"{LABELS.get(metric, metric)} {'↑' if higher_is_better(metric) else '↓'}"


def explanation(metric: str) -> str:
    """The metric in words, for the line below a table."""
    direction = "higher is better" if higher_is_better(metric) else "lower is better"
    unit = ", in percent" if unit_of(metric) == "percent" else ""
    return f"{LABELS.get(metric, metric)}{unit}: {_described(metric).description}; {direction}."


def unit_of(metric: str) -> Unit:
    """How people read its values; all but a few are shares, shown in percent."""
    return ATTACK_METRICS[metric].unit if metric in ATTACK_METRICS else "percent"


def _described(metric: str) -> MetricInfo | RejectionMetric | AttackMetric:
    known: dict[str, MetricInfo | RejectionMetric | AttackMetric] = {**METRICS, **REJECTION_METRICS, **ATTACK_METRICS}
    if metric not in known:
        raise UnknownNameError("metric", metric, known, f"Known: {', '.join(known)}")
    return known[metric]


def percent(value: float) -> str:
    """``0.88031`` as ``88.03``."""
    return f"{100 * value:.2f}"


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
