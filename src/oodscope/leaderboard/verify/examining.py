"""Examine: what the two files of an entry say, whatever the board around them holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.leaderboard.records.board import Places
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import read_scores
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.protocols.registry import PROTOCOLS, stored_protocol
from oodscope.protocols.separation import GROUPS, separate
from oodscope.protocols.statements import Statements
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

TIED = 0.01
"""Share of tied pairs of ID and OOD images from which an AUROC is called unreliable: ties count half, and where they
come from saturation, half is a guess."""

_EXACT = 1e-6


def suspicions(entry: Entry, scores: ScoreTable, measurements: Measurements) -> Iterator[str]:
    """Reasons for care, one sentence each; the first word says which kind."""
    detector = entry.detector.id
    values = {name: scores.scores(detector, set=name) for group in GROUPS for name in scores.sets(group)}
    known = scores.scores(detector, role="id_test")
    for name, ood in values.items():
        if (share := tied_pairs(known, ood)) > TIED:
            yield f"unreliable: {100 * share:.1f} % of the pairs behind the AUROC on {name} are ties"
    if values and entry.attack is None:
        if reason := _traces({"id_test": known, **values}):
            yield f"transductive suspicion: {reason}"
        aurocs = [row.value for row in measurements.filter(metric="auroc", protocol="standard", detector=detector)]
        if aurocs and max(aurocs) < 0.5:
            yield "unreliable: every AUROC is below one half; is the sign of the score turned?"
    for name, each in entry.benchmark.sets.items():
        if each.exposure:
            yield f"exposure: {name}: {each.exposure}"
    for search in entry.attack.searches if entry.attack is not None else ():
        for flag in search.flags:
            yield f"unreliable: search under {search.variation}: {flag}"
    if missing := list(_missing(entry)):
        yield f"incomplete: not known: {', '.join(missing)}"


def tied_pairs(known: NDArray[np.float64], ood: NDArray[np.float64]) -> float:
    """The share of pairs (ID image, OOD image) with equal scores."""
    ordered = np.sort(known)
    equal = ordered.searchsorted(ood, "right") - ordered.searchsorted(ood, "left")
    return float(equal.sum() / (known.size * ood.size))


def _traces(values: dict[str, NDArray[np.float64]]) -> str:
    """Marks that a normalisation over a test set leaves: a score that knew one image at a time has none of them."""
    spread = {name: each for name, each in values.items() if each.size > 2 and np.ptp(each) > 0.0}
    if len(spread) < 2:
        return ""
    if all(abs(each.mean()) < _EXACT and abs(each.std() - 1.0) < 0.01 for each in spread.values()):
        return "the scores of every set have mean 0 and spread 1"
    if all(each.min() == 0.0 and each.max() == 1.0 for each in spread.values()):
        return "the scores of every set reach from 0 to 1 exactly"
    pooled = np.sort(np.concatenate(list(spread.values())))
    steps = np.diff(pooled)
    if pooled.size > 20 and steps.min() > 0.0 and np.ptp(steps) <= _EXACT * steps.mean():
        return "the scores of all test images together are equally spaced, as ranks are"
    return ""


def _missing(entry: Entry) -> Iterator[str]:
    model, detector = entry.model, entry.detector
    known = {
        "weights hash": model.weights_hash,
        "architecture": model.architecture,
        "head path": model.head_path,
        "score form": detector.score_form,
        "fit split": detector.fit_split,
        "resize filter": entry.benchmark.preprocessing.resize_filter,
        "training data": NOT_KNOWN if model.trained_on is None else "",
    }
    yield from (name for name, value in known.items() if value == NOT_KNOWN)


def protocol_versions(names: Iterable[str]) -> dict[str, int]:
    """The versions that this package judges by."""
    return {name: _version(name) for name in names}


def judge(scores: ScoreTable, protocols: Mapping[str, int]) -> Measurements:
    """Every number of these protocols from the scores alone; another version than ours is refused."""
    found = Measurements()
    for name, version in protocols.items():
        if version != _version(name):
            raise DataError(f"protocol {name} version {version}; this version of oodscope judges by {_version(name)}")
        try:
            found = found + stored_protocol(scores, name).measurements(scores)
        except (ArithmeticError, LookupError, ValueError) as error:
            # scores of strangers may be odd in ways that no protocol foresaw; one entry must not stop a board
            raise DataError(f"protocol {name} cannot judge these scores: {type(error).__name__}: {error}") from error
    return found


def _version(name: str) -> int:
    return PROTOCOLS.get(name).version


Placed = dict[tuple[str, str], Places]
"""By protocol and group: what images and OOD classes contribute to the mean AUROC."""


@dataclass(frozen=True)
class Examined:
    """Every number of an entry once more from its scores.

    Parameters
    ----------
    measurements : by the protocols that the entry names.
    placed : for paired tests between entries.
    flags : what the scores say against the entry; see :func:`suspicions`.
    """

    measurements: Measurements
    placed: Placed
    flags: tuple[str, ...]


Examiner = Callable[[Path, Entry], Examined]


def examine(folder: Path, entry: Entry) -> Examined:
    """Read the scores and judge them; what cannot be believed is a ``DataError``."""
    scores = read_scores(folder, entry)
    try:
        measurements = judge(scores, entry.protocols)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    return Examined(measurements, _placements(entry, scores), tuple(suspicions(entry, scores, measurements)))


def _placements(entry: Entry, scores: ScoreTable) -> Placed:
    """What each image and each sampled OOD class contributes to the mean AUROCs of the protocols that rank."""
    found: Placed = {}
    for name in entry.protocols:
        protocol = stored_protocol(scores, name)
        if protocol.negatives:
            separation = separate(scores, protocol.negatives, protocol.groups)[entry.detector.id]
            if separation.testable:
                statements = Statements({entry.detector.id: separation})
                for group, sets in separation.groups.items():
                    classes = () if statements.refusal(sets) else tuple(statements.units[each] for each in sets)
                    found[name, group] = Places(separation.placements(sets), classes)
    return found
