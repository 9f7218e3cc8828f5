"""Claim: a statement that numbers support or refute."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What should be so, whether it is, and by which numbers."""

    text: str
    holds: bool
    evidence: str
