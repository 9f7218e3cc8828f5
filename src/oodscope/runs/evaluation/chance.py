"""Whether a classifier or a detector is better than chance: at chance, a ranking of detectors is a ranking of noise."""

from oodscope.document.number import Number
from oodscope.results.scoretable import ScoreTable

LEAST_SKILL = 0.05
"""The share of the way from chance to perfect that counts as having learned something."""


def class_count(scores: ScoreTable) -> int:
    """How many classes the classifier distinguishes, as far as labels and predictions show."""
    return 1 + int(scores.frame[["label", "prediction"]].to_numpy().max(initial=0))


def at_chance(accuracy: Number, classes: int) -> str:
    """A sentence where a classifier is at chance, else nothing.

    It is at chance where its interval holds 1 / classes, or where it is less than 5 % of the way from there to 1.
    """
    if classes < 2:
        return ""
    chance = 1 / classes
    low = accuracy.value if accuracy.low is None else accuracy.low
    if low > chance and (accuracy.value - chance) / (1 - chance) >= LEAST_SKILL:
        return ""
    return (
        f"The classifier is at chance: {accuracy.number} % accuracy in {classes} classes, where guessing gives "
        f"{100 * chance:.1f} %. Its detectors judge noise."
    )


def separation_at_chance(best: Number) -> str:
    """A sentence where the best AUROC is no better than 50, else nothing."""
    low = best.class_low if best.class_low is not None else best.low
    if (best.value if low is None else low) > 0.5:
        return ""
    return f"No detector is shown to be better than chance: the highest AUROC is {best.number}, chance is 50."
