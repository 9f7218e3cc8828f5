"""What a study of generated sets says for and against detectors."""

from collections.abc import Iterator

from oodscope.document.chapter import anchor_of
from oodscope.document.claim import count_claims
from oodscope.document.number import Number
from oodscope.document.trial import Entry, Trial, make_trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.runs.generated.claims import claims
from oodscope.runs.generated.run import PROTOCOL, GeneratedStudy


def trials_of(study: GeneratedStudy) -> Iterator[Trial]:
    """One trial for each network and generated near-OOD set."""
    separation = study.separation("auroc")
    found = claims(study)
    doubts = () if all(each.holds for each in found) else (f"the generated set itself: {count_claims(found)}",)
    for network in study.networks:
        for name in study.sanity.near():
            rows = [row for (model, _, of), row in separation.items() if (model, of) == (network, name)]
            numbers = [Number(row.value, row.low, row.high, exposure=row.exposure, doubts=doubts) for row in rows]
            entries = [Entry(row.detector, row.tuning, number) for row, number in zip(rows, numbers)]
            if entries:
                yield make_trial(
                    PROTOCOL,
                    f"{study.results[0].record.benchmark}, {network}",
                    f"AUROC on {name}",
                    entries,
                    higher=True,
                    model=study.result(network).record.model_fingerprint,
                )


def weaknesses_of(study: GeneratedStudy, subject: Subject) -> Iterator[Weakness]:
    """The generated near-OOD set that a detector separates worst."""
    rows = [
        row
        for row in study.separation("auroc").values()
        if (row.detector, row.tuning) == (subject.detector, subject.tuning) and row.set in study.sanity.near()
        if subject.fits(study.result(row.model).record.model_fingerprint)
    ]
    if rows:
        row = min(rows, key=lambda row: row.value)
        words, anchor = f"{row.set}, AUROC", anchor_of(PROTOCOL)
        found = claims(study)
        after = "" if all(each.holds for each in found) else f"(of that set {count_claims(found).rstrip('.')})"
        yield Weakness("generated", words, row.value, after, anchor, -row.value)
