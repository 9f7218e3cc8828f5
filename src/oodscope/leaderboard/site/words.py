"""What the site says about tiers, tracks and protocols: in one place, the same on every page."""

from typing import get_args

from oodscope.document import wording
from oodscope.leaderboard.records.entry import Track
from oodscope.leaderboard.records.standing import Covered, Standing, Tier, TuningTrack
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.protocols.registry import known_protocol, protocol_of

TIERS: dict[Tier, str] = {
    "retrained": "The same recipe was trained with three seeds or more, and every network's scores follow from its "
    "published activations. Ranked.",
    "re-executed": "The scores were computed again from published activations and agree, and so do predictions, labels "
    "and image lists; each entry says what else was. Ranked.",
    "recomputed": "Every number follows from the submitted scores; nobody but the submitter computed the scores. "
    "Shown, not ranked.",
    "reported": "Printed by somebody, typed in with its source; nothing was recomputed. Shown, not ranked.",
}
"""How far an entry was checked, best first."""

GRAVE = ("unreliable", "disputed", "transductive")
"""First words of flags that put a number in doubt; the others say what is not known."""

TRACKS: dict[Track, tuple[str, str]] = {
    "post-hoc": ("Post-hoc", "a score on top of a given network"),
    "training": ("Training", "the network was trained for it, on ID data alone"),
    "outlier-data": ("Outlier data", "it has learned from real outliers"),
    "vision-language": ("Vision-language", "it uses text beside images"),
    "transductive": ("Transductive", "the score of an image depends on other test images"),
}
"""What a method may use: its name on pages and its meaning."""

TUNINGS: dict[TuningTrack, tuple[str, str]] = {
    "default": (wording.TRACKS["default"], "those of the registry; nothing was searched"),
    "by hand": ("parameters by hand", "not those of the registry, or the registry does not have the detector"),
    "id_only": (wording.TRACKS["id_only"], "parameters were searched without real outliers"),
    "ood_val": (wording.TRACKS["ood_val"], "parameters were searched on real validation outliers"),
}
"""How parameters were chosen: the name that all tables use and its meaning."""

TUNED: dict[TuningTrack, str] = {
    "default": "default",
    "by hand": "by hand",
    "id_only": "tuned on ID",
    "ood_val": "tuned on OOD",
}
"""The same in two words, for narrow columns."""

COVERED: tuple[Covered, ...] = get_args(Covered)


def not_covered(standing: Standing) -> list[str]:
    """What the numbers of a re-executed entry depend on and nobody computed again."""
    roles = {each.role for each in standing.entry.benchmark.sets.values() if each.list_hash != NOT_KNOWN}
    absent = {role for role in ("id_val", "id_train") if role not in roles}
    return [each for each in COVERED if each not in {*standing.covered, *absent}] if standing.covered else []


def protocol_title(name: str) -> str:
    """The name of a protocol as a heading; of one that is not installed, its name."""
    return protocol_of(name).title if known_protocol(name) else name


def protocol_summary(name: str) -> str:
    """What it asks, in a line; empty where it is not installed."""
    return protocol_of(name).summary if known_protocol(name) else ""
