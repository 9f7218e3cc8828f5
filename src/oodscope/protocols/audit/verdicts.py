"""What a finding means, by the roles of the two sets."""

from oodscope.data.benchmark import ID_ROLES
from oodscope.results.audit import Verdict

_TESTED = ("id_test", "csid", "near", "far")
_TUNED_ON = {"id_val": ("id_test", "csid"), "ood_val": ("near", "far")}
_LEARNT_FROM = {"id_train": ("id_test", "csid"), "ood_train": ("near", "far")}


def verdict_of(first: str, second: str, *, exact: bool) -> Verdict:
    """The verdict on a picture that two roles share.

    Fatal: validation and test of one side share it, pixel for pixel. Contamination: it is an outlier here and
    in-distribution there; or it is tested and was learnt from; or a near duplicate of it was tuned on. All else is
    worth a note: repeats inside a set, or in two sets of one side.
    """
    pairs = ((first, second), (second, first))
    if any(judged in _TUNED_ON.get(tuned, ()) for tuned, judged in pairs):
        return "fatal" if exact else "contamination"
    if any(judged in _LEARNT_FROM.get(learnt, ()) for learnt, judged in pairs):
        return "contamination"
    return "contamination" if (first in ID_ROLES) != (second in ID_ROLES) else "note"


def verdict_of_class(role: str, relation: str) -> Verdict:
    """The verdict on an outlier class that meets an ID class: grave if its images are ID and are tested."""
    return "contamination" if role in _TESTED and relation in ("same name", "same meaning", "kind of") else "note"
