"""Rerun: the detector of an entry once more, on published activations, in three orders.

Beside the scores, whatever else its numbers depend on is compared with what was published: predictions with the arg max
of the logits, images, labels and order of every set with the published lists (of ``id_train`` with the seeded draw of
the protocol), searched parameters with a search of our own. The receipt names what was covered.

Nothing that was submitted is executed. A detector comes from the registry, or is a class that whoever runs this names;
an entry can ask for neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.activations.store.published import PublishedActivations
from oodscope.base.errors import DataError, DetectorError
from oodscope.base.files import file_sha256
from oodscope.data.benchmark import Validation
from oodscope.detectors.base import Detector, Needs, parameters_json
from oodscope.detectors.saving import restored
from oodscope.detectors.tuning import tune
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import ENTRY, list_hash, read_entry, read_scores
from oodscope.leaderboard.records.keeping import Receipt
from oodscope.leaderboard.records.standing import Covered
from oodscope.leaderboard.verify.defaults import by_hand
from oodscope.protocols.registry import stored_protocol
from oodscope.results.scoretable import ScoreTable

TOLERANCE = 1e-4
"""Deviations of a score up to here, in units of the spread of the scores, are rounding: other libraries and devices
multiply matrices in another order."""

ALONE = 256
"""Images that are scored one by one, spread over all sets."""

PREFIX = "python:"
Values = NDArray[np.float64]
Verdict = Literal["re-executed", "transductive", "random", "different"]


def rerun(
    folder: Path | str, activations: Path | str, *, detector: str | None = None, alone: int = ALONE, seed: int = 0
) -> Receipt:
    """Run the detector of an entry again; the receipt says whether its scores came out, and on what they depend.

    It is fitted as it was, with the parameters of the entry, and scores every set in order, once more in order, all
    sets together in a random order, and some images one by one.

    Parameters
    ----------
    activations : a folder of published activations of the same network and benchmark.
    detector : ``python:PACKAGE.MODULE:CLASS``, a class that is installed here and takes the parameters of the entry,
        for an entry whose detector is not in the registry.
    alone : images to score one by one.
    """
    entry = read_entry(folder)
    scores = read_scores(folder, entry)
    assert entry.scores is not None, "an entry without scores was refused"
    published = PublishedActivations(activations)
    _check_same(entry, published)
    rows = _training_rows(scores, published)
    judged = _judged(entry, scores, published, rows)
    made = _make(entry, detector)
    learned = _learned(made, published, rows)
    searched = _searched(made, entry, learned)
    fitted = _fitted(made, entry, learned)
    found = run_again(fitted, judged, alone=alone, seed=seed)
    submitted = np.concatenate([each.submitted for each in judged.values()])
    scale = _scale(submitted)
    in_order = _deviation(found.in_order, submitted, scale)
    repeated = _deviation(found.repeated, found.in_order, scale)
    shuffled = _deviation(found.shuffled, found.in_order, scale)
    one_by_one = _deviation(found.one_by_one, found.in_order[found.alone], scale)
    wrong = sum(each.wrong_predictions for each in judged.values())
    reason = _reason(wrong, searched, entry)
    return Receipt(
        entry=entry.id,
        record=file_sha256(Path(folder) / ENTRY),
        scores=entry.scores.sha256,
        activations=published.checksum,
        weights_hash=published.manifest.weights_hash,
        detector=detector or entry.detector.name,
        detector_version=fitted.version,
        covered=_covered(scores, entry, searched),
        predictions=wrong,
        in_order=in_order,
        repeated=repeated,
        shuffled=shuffled,
        one_by_one=one_by_one,
        one_by_one_rows=len(found.alone),
        tolerance=TOLERANCE,
        verdict="different" if reason else verdict_of(in_order, repeated, shuffled, one_by_one),
        reason=reason,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
    )


@dataclass(frozen=True)
class Judged:
    """One set: its activations, in the order of the entry, and the scores and predictions that were submitted."""

    activations: Activations
    submitted: Values
    predictions: NDArray[np.int64]

    @property
    def wrong_predictions(self) -> int:
        """Rows whose prediction is not a class with the largest logit; of equal ones any counts."""
        logits = self.activations.logits.cpu().numpy()
        inside = (self.predictions >= 0) & (self.predictions < logits.shape[1])
        given = logits[np.arange(len(logits)), np.where(inside, self.predictions, 0)]
        return int((~inside | (given < logits.max(axis=1))).sum())


@dataclass(frozen=True)
class Again:
    """The scores of all sets, one after the other, from each way of asking; ``alone`` are the rows asked one by one."""

    in_order: Values
    repeated: Values
    shuffled: Values
    one_by_one: Values
    alone: NDArray[np.int64]


def run_again(detector: Detector, judged: Mapping[str, Judged], *, alone: int, seed: int) -> Again:
    """Score every set in order, twice; then all images of all sets in one random order; then some one by one."""
    parts = [each.activations for each in judged.values()]

    def in_order() -> Values:
        return np.concatenate([_scores(detector, each) for each in parts])

    first = in_order()
    rng = np.random.default_rng(seed)
    pooled = _joined(parts)
    order = rng.permutation(len(pooled))
    shuffled = np.empty_like(first)
    shuffled[order] = _scores(detector, pooled.take(order))
    rows = np.sort(rng.choice(len(pooled), size=min(alone, len(pooled)), replace=False))
    single = np.array([_scores(detector, pooled.take([row]))[0] for row in rows])
    return Again(first, in_order(), shuffled, single, rows)


def verdict_of(in_order: float, repeated: float, shuffled: float, one_by_one: float) -> Verdict:
    """What the deviations mean, the gravest first."""
    if repeated > TOLERANCE:
        return "random"
    if max(shuffled, one_by_one) > TOLERANCE:
        return "transductive"
    return "different" if in_order > TOLERANCE else "re-executed"


def _scores(detector: Detector, activations: Activations) -> Values:
    return np.asarray(detector.score(activations).cpu().numpy(), dtype=np.float64)


def _joined(parts: list[Activations]) -> Activations:
    names = [name for name in ("logits", "features", "prediction") if all(name in part for part in parts)]
    columns: dict[str, Any] = {name: np.concatenate([part[name].cpu().numpy() for part in parts]) for name in names}
    return Activations(**columns, head=parts[0].head)


def _scale(values: Values) -> float:
    spread = float(values.std())
    return spread if spread > 0.0 else 1.0


def _deviation(mine: Values, theirs: Values, scale: float) -> float:
    """The largest difference; where a score is far out of the spread, in units of the score itself."""
    return float(np.max(np.abs(mine - theirs) / np.maximum(scale, np.abs(theirs))))


def _check_same(entry: Entry, published: PublishedActivations) -> None:
    manifest = published.manifest
    if (manifest.benchmark, manifest.benchmark_version) != (entry.benchmark.name, entry.benchmark.version):
        stated = f"{manifest.benchmark}@{manifest.benchmark_version}"
        raise DataError(f"the entry is of {entry.benchmark}, the activations are of {stated}")
    if manifest.weights_hash != entry.model.weights_hash:
        raise DataError("the entry is of another network than the activations (weights hash differs)")
    if entry.attack is not None:
        raise DataError("an entry of an attack cannot be run again on activations: its search made its own images")


Rows = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Of the published ``id_train``: the rows to fit on, and the rows to score."""


def _training_rows(scores: ScoreTable, published: PublishedActivations) -> Rows | None:
    """The draw that the protocol makes from ``id_train``, by the options and the seed of the entry."""
    names = published.sets("id_train")
    if not names or not scores.sets("id_train"):
        return None
    labels = published.images(names[0])["label"].to_numpy(dtype=np.int64)
    asked = (stored_protocol(scores, name) for name in scores.context.protocols)
    drawn = (each.training_rows(labels, scores.context.seed or 0) for each in asked)
    return next((rows for rows in drawn if rows is not None), None)


def _judged(
    entry: Entry, scores: ScoreTable, published: PublishedActivations, training: Rows | None
) -> dict[str, Judged]:
    found = {}
    for name in scores.sets():
        if name not in published.manifest.sets:
            raise DataError(f"the published activations hold no set {name!r}")
        rows = scores.frame[(scores.frame["set"] == name).to_numpy()]
        places = _places(name, rows, published.images(name), training)
        found[name] = Judged(
            published.activations(name).take(places),
            rows[entry.detector.id].to_numpy(),
            rows["prediction"].to_numpy(dtype=np.int64),
        )
    return found


def _places(name: str, rows: pd.DataFrame, images: pd.DataFrame, training: Rows | None) -> NDArray[np.int64]:
    """Where the images of an entry stand in a published set: it must have all in order, of ``id_train`` the draw."""
    places = np.arange(len(images))
    if rows["role"].iloc[0] == "id_train" and training is not None:
        places = training[1]
    if list_hash(rows) != list_hash(images.iloc[places]):
        raise DataError(f"set {name!r}: not the published images, labels or order")
    return places


def _make(entry: Entry, named: str | None) -> Detector:
    """The detector with the parameters of the entry, from the registry or from what the caller names."""
    if named is None:
        if entry.detector.name.startswith(PREFIX):
            raise DetectorError(
                f"the entry's detector is {entry.detector.name!r}; nothing is imported because an entry says so. If it "
                "is installed and you trust it, name it yourself: --detector"
            )
        made = restored(entry.detector.name, entry.detector.params)
    else:
        made = _installed(named)(**entry.detector.params)
    if entry.detector.version is not None and made.version != entry.detector.version:
        raise DetectorError(
            f"{entry.detector.name}: the entry is of version {entry.detector.version} of its score, installed is "
            f"{made.version}"
        )
    return made


def _installed(named: str) -> Callable[..., Detector]:
    module, _, name = named.removeprefix(PREFIX).partition(":")
    if not named.startswith(PREFIX) or not name:
        raise DetectorError(f"{named!r} does not name a class; write python:PACKAGE.MODULE:CLASS")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise DetectorError(f"{named}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Detector)):
        raise DetectorError(f"{named} is not a detector")
    return found


Learned = Mapping[str, Activations | None]
"""By role: the published activations that detectors learn from, ``id_train`` as the protocol divides it."""


def _learned(detector: Detector, published: PublishedActivations, training: Rows | None) -> Learned:
    if detector.probes:
        raise DetectorError(
            f"{detector.name}: reads {detector.probes[0].column!r}, and published activations hold logits and features"
        )
    found: dict[str, Activations | None] = {}
    for role in ("id_train", "id_val", "ood_val"):
        names = published.sets(role)
        part = published.activations(names[0]) if names else None
        found[role] = part.take(training[0]) if part is not None and role == "id_train" and training else part
    return found


def _searched(detector: Detector, entry: Entry, learned: Learned) -> dict[str, Any] | None:
    """The parameters that a search of our own chooses; nothing where none was made or its outliers are not there."""
    train, val, outliers = learned["id_train"], learned["id_val"], learned["ood_val"]
    if entry.tuning != "ood_val" or val is None or outliers is None:
        return None
    chosen, _ = tune(detector, train if Needs.TRAIN in detector.needs else None, Validation(val, outliers))
    return parameters_json(chosen)


def _fitted(detector: Detector, entry: Entry, learned: Learned) -> Detector:
    if not detector.learns:
        return detector
    train, val = learned["id_train"], learned["id_val"]
    rows = entry.detector.fit_rows
    sizes = [len(part) for part in (train, val) if part is not None]
    if rows is not None and rows not in sizes:
        raise DetectorError(
            f"{detector.name}: was fitted on {rows} images; the published sets to learn from hold {sizes}"
        )
    return detector.fit(train, val, ood_val=learned["ood_val"] if entry.tuning == "ood_val" else None)


def _reason(wrong: int, searched: dict[str, Any] | None, entry: Entry) -> str:
    """What was compared and differs; empty where nothing does."""
    if wrong:
        return f"{wrong} predictions are not the arg max of the published logits"
    if searched is not None and searched != dict(entry.detector.params):
        odd = next(name for name in searched if searched[name] != entry.detector.params.get(name))
        return f"the search on the published activations chooses {odd} = {searched[odd]!r}, the entry has another"
    return ""


def _covered(scores: ScoreTable, entry: Entry, searched: dict[str, Any] | None) -> tuple[Covered, ...]:
    """What this re-execution speaks of. A choice of parameters is covered where we would have made the same."""
    covered: list[Covered] = ["scores", "predictions", "labels"]
    covered += [role for role in ("id_val", "id_train") if scores.sets(role)]
    own_choice = entry.tuning == "default" and not by_hand(entry)
    return (*covered, "parameters") if own_choice or searched is not None else tuple(covered)
