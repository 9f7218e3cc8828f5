"""Claim: a statement that numbers support or refute, or that they cannot decide."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What should be so, whether it is, and by which numbers.

    Parameters
    ----------
    holds : None where the numbers cannot decide, such as those of judges that are not fit to judge.
    """

    text: str
    holds: bool | None
    evidence: str

    @property
    def answer(self) -> str:
        """``yes``, ``no`` or ``cannot say``."""
        return "cannot say" if self.holds is None else "yes" if self.holds else "no"


def claims_verdict(claims: Sequence[Claim]) -> str:
    """The count, and which do not hold: ``10 of 13 claims hold, 3 fail. Not: it is nearer than cifar100; ….``"""
    count = count_claims(claims)
    failing = [each.text for each in claims if each.holds is False]
    return f"{count} Not: {'; '.join(failing)}." if failing else count


def count_claims(claims: Sequence[Claim]) -> str:
    """How many hold, fail and cannot be decided: ``10 of 13 claims hold, 2 fail, 1 cannot be said.``"""
    if not claims:
        return ""
    answers = [each.holds for each in claims]
    failing = f", {answers.count(False)} fail{'s' * (answers.count(False) == 1)}" if False in answers else ""
    open_ones = f", {answers.count(None)} cannot be said" if None in answers else ""
    holding = answers.count(True)
    return f"{holding} of {len(claims)} claims hold{'s' * (holding == 1)}{failing}{open_ones}."
