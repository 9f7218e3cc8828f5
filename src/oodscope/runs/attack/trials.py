"""What an attack says for and against detectors: its trial, and the largest fall of a detector."""

from collections.abc import Iterator

from oodscope.document.chapter import anchor_of
from oodscope.document.number import Number
from oodscope.document.trial import Entry, Trial, make_trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.document.wording import percent
from oodscope.runs.attack.run import ANY, CLEAN, PROTOCOL, Attack


def trial_of(attack: Attack) -> Trial:
    """What is left under the worst of all variations; of a single variation, under it."""
    rows = attack.measurements.filter(protocol=PROTOCOL, metric="auroc")
    groups = rows.distinct("group")
    group = ANY if ANY in groups else groups[-1]
    entries = [
        Entry(
            row.detector,
            row.tuning,
            Number(row.value, row.low, row.high, exposure=row.exposure, doubts=doubts_of(attack, row.detector, group)),
        )
        for row in rows.filter(group=group)
    ]
    return make_trial(
        PROTOCOL,
        f"{attack.about['outliers']}, {attack.record.model}",
        f"AUROC under {_words(group)}",
        entries,
        higher=True,
        model=attack.record.model_fingerprint,
    )


def doubts_of(attack: Attack, detector: str, group: str) -> tuple[str, ...]:
    """Why a detector may be left with less than the number under a variation says: reasons of its searches."""
    own = [each for each in attack.searches if each.detector == detector and group in (each.variation, ANY)]
    return tuple(f"{each.variation}: {flag}" for each in own for flag in each.flags)


def _words(group: str) -> str:
    return "any variation" if group == ANY else group


def weaknesses_of(attack: Attack, subject: Subject) -> Iterator[Weakness]:
    """The largest fall of a detector's AUROC, where the same network was attacked."""
    if not subject.fits(attack.record.model_fingerprint):
        return
    rows = attack.measurements.filter(protocol=PROTOCOL, metric="auroc", detector=subject.detector)
    clean = {row.set: row.value for row in rows.filter(group=CLEAN)}
    falls = [(clean[row.set] - row.value, clean[row.set], row) for row in rows if row.set in clean]
    if falls:
        fall, before, row = max(falls, key=lambda each: each[0])
        words = f"{row.set} under {_words(row.group)}: AUROC {percent(before)} →"
        doubts = doubts_of(attack, subject.detector, row.group)
        yield Weakness("largest fall", words, row.value, "", anchor_of(PROTOCOL), fall, doubts)
