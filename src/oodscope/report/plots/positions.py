"""Which colour a set or detector has: its position, the same in every plot of a page."""

from collections.abc import Iterable

from oodscope.results.scoretable import ScoreTable

COMPARED = ("near", "far", "csid")
"""Roles of the sets that are compared with ID, in the order in which they take their colours."""


def set_positions(scores: ScoreTable) -> dict[str, int]:
    """Every set that is compared with ID: near ones, far ones, then shifted ones."""
    return {name: place for place, name in enumerate(name for role in COMPARED for name in scores.sets(role))}


def detector_positions(detectors: Iterable[str]) -> dict[str, int]:
    """Detectors in the order given; a page gives the same to all its plots."""
    return {name: place for place, name in enumerate(detectors)}
