"""The verdict of an attack: who keeps most, who is broken most, and whether the searches had finished."""

from oodscope.document.trial import Entry
from oodscope.document.wording import percent
from oodscope.runs.attack.run import CLEAN, PROTOCOL, Attack
from oodscope.runs.attack.trials import trial_of


def attack_verdict(attack: Attack) -> str:
    """One sentence on the detectors, and one on how far the numbers can be trusted.

    A value of a search that had not finished is a bound: a longer search can only find worse.
    """
    trial = trial_of(attack)
    where = trial.what.removeprefix("AUROC ")
    best, worst = trial.entries[0], trial.entries[-1]
    if len(trial.entries) == 1:
        said = f"{where[0].upper()}{where[1:]}, {best.detector} falls from {_fall(attack, best)} AUROC."
    else:
        said = (
            f"{worst.detector} is broken most: {where} its AUROC falls from {_fall(attack, worst)}. "
            f"{best.detector} keeps most: from {_fall(attack, best)}."
        )
    return f"{said} {_finished(attack)}"


def broken_first(attack: Attack) -> list[str]:
    """The detectors, the one that is left with least first."""
    return [entry.detector for entry in reversed(trial_of(attack).entries)]


def _fall(attack: Attack, entry: Entry) -> str:
    (clean,) = attack.measurements.filter(protocol=PROTOCOL, metric="auroc", detector=entry.detector, group=CLEAN)
    bound = "at most " if entry.cell.doubts else ""
    return f"{percent(clean.value)} to {bound}{percent(entry.cell.value)}"


def _finished(attack: Attack) -> str:
    stopped = sum(bool(each.flags) for each in attack.searches)
    if not stopped:
        return f"None of the {len(attack.searches)} searches shows a sign that it stopped too early."
    return (
        f"{stopped} of {len(attack.searches)} searches stopped too early: their numbers (*) are upper bounds, and "
        "which detector is more robust cannot be said from them."
    )
