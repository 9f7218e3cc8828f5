"""The leaderboard's records: entries as they were handed in, standings as they were found, the board of all."""

from oodscope.results.leaderboard.board import Board, BoardRow, Erratum
from oodscope.results.leaderboard.entry import Entry, Track
from oodscope.results.leaderboard.records import (
    AttackUse,
    BenchmarkUse,
    Claim,
    DetectorUse,
    Execution,
    ModelUse,
    Preprocessing,
    Publication,
    Reported,
    ScoresFile,
    Search,
    SearchedVariation,
    SetUse,
    Threshold,
)
from oodscope.results.leaderboard.standing import RANKED, Difference, Standing, Tier
from oodscope.results.leaderboard.text import NOT_KNOWN

__all__ = [
    "NOT_KNOWN",
    "RANKED",
    "AttackUse",
    "BenchmarkUse",
    "Board",
    "BoardRow",
    "Claim",
    "DetectorUse",
    "Difference",
    "Entry",
    "Erratum",
    "Execution",
    "ModelUse",
    "Preprocessing",
    "Publication",
    "Reported",
    "ScoresFile",
    "Search",
    "SearchedVariation",
    "SetUse",
    "Standing",
    "Threshold",
    "Tier",
    "Track",
]
