"""An entry as a folder: ``entry.json``, ``scores.parquet``, and nothing else."""

from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pandas as pd

from oodscope.base.boundedjson import plain_size, read_bounded_json
from oodscope.base.config import parse
from oodscope.base.errors import DataError, OodscopeError, StorageError
from oodscope.base.files import file_sha256, write_text
from oodscope.base.hashing import fingerprint
from oodscope.leaderboard.records.boundedscores import MOST_BYTES, read_bounded_scores
from oodscope.leaderboard.records.entry import SCHEMA, Entry
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.results.scoretable import JUDGED, ScoreTable
from oodscope.runs.attack.run import unit_of_search

LISTED_UNITS = ("", "all", "clean")
"""Units whose rows are images of a published list; every other one holds what a search found."""


def list_hash(frame: pd.DataFrame) -> str:
    """Of names, labels and own classes in order: equal only for the same images in the same order."""
    return fingerprint(
        "image list",
        frame["sample_id"].astype(str).tolist(),
        frame["label"].to_numpy(dtype="int64"),
        frame["own_class"].to_numpy(dtype="int64"),
    )


def table_lists(scores: ScoreTable) -> dict[str, tuple[str, int, str]]:
    """Role, number of images and list hash of every set, from the rows themselves."""
    frame = scores.frame[scores.frame["unit"].isin(LISTED_UNITS)]
    found = {}
    for name in scores.sets():
        rows = frame[(frame["set"] == name).to_numpy()]
        roles = rows["role"].unique()
        if len(roles) != 1:
            raise DataError(f"set {name!r} has rows of {len(roles)} roles; a set has one")
        found[name] = (str(roles[0]), len(rows), list_hash(rows))
    return found


ENTRY, SCORES = "entry.json", "scores.parquet"


def write_entry(board: Path | str, entry: Entry, scores: ScoreTable | None = None) -> Path:
    """Write an entry into a board's folder, under its id; what is there is never overwritten.

    ``entry.json`` comes last and holds the checksum of the scores, so a folder whose writing was interrupted does not
    pass for an entry.
    """
    folder = Path(board) / entry.id
    if folder.exists():
        raise StorageError(f"{folder} exists, and entries are never overwritten; choose another id and supersede it")
    if scores is not None:
        scores.save(folder / SCORES)
        described = {"sha256": file_sha256(folder / SCORES), "rows": len(scores)}
        entry = parse(Entry, entry.model_dump() | {"scores": described}, entry.id)
    write_text(folder / ENTRY, entry.model_dump_json(indent=1) + "\n")
    return folder


def read_entry(folder: Path | str) -> Entry:
    """The record of an entry, strictly checked: schema, version, plain files only, no strangers among them."""
    folder = Path(folder)
    _check_folder(folder)
    content = read_bounded_json(folder / ENTRY)
    if (version := content.get("schema_version")) != SCHEMA:
        raise DataError(f"{folder / ENTRY}: schema_version {version!r}; this version of oodscope reads {SCHEMA}")
    try:
        entry = parse(Entry, content, str(folder / ENTRY))
    except OodscopeError as error:
        raise DataError(str(error)) from error
    if entry.id != folder.resolve().name:
        raise DataError(f"{folder}: the entry is called {entry.id!r}; its folder must be called the same")
    return entry


def read_scores(folder: Path | str, entry: Entry) -> ScoreTable:
    """The scores of an entry: the file that it names by checksum, the images that it lists, every number finite."""
    path = check_score_file(folder, entry)
    frame = read_bounded_scores(path, entry.detector.id)
    try:
        scores = ScoreTable(frame, score_context(entry))
        _check_units(entry, scores)
        _check_lists(entry, scores)
    except OodscopeError as error:
        raise DataError(f"{path}: {error}") from error
    return scores


def check_score_file(folder: Path | str, entry: Entry) -> Path:
    """The score file of an entry, if it is there and is the one that the entry names by checksum."""
    path = Path(folder) / SCORES
    if entry.scores is None:
        raise DataError(f"{folder}: the entry has no scores")
    if plain_size(path) > MOST_BYTES:
        raise DataError(f"{path}: {plain_size(path):,} bytes; at most {MOST_BYTES:,} are read")
    if file_sha256(path) != entry.scores.sha256:
        raise DataError(f"{path}: not the file of this entry (checksum differs)")
    return path


def score_context(entry: Entry) -> dict[str, Any]:
    """What protocols want to know of a score table, from the entry alone."""
    detector, execution = entry.detector, entry.execution
    described = {
        "name": detector.name,
        "version": detector.version,
        "params": detector.params,
        "tuning": entry.tuning,
        "grid_size": detector.search.grid_size,
        "validation_auroc": detector.search.validation_auroc,
        "fit_seconds": detector.fit_seconds,
        "microseconds_per_image": detector.microseconds_per_image,
        "peak_mib": detector.peak_mib,
    }
    context: dict[str, Any] = {
        "detectors": {detector.id: described},
        "run": entry.id,
        "benchmark": entry.benchmark.name,
        "benchmark_version": entry.benchmark.version,
        "model": entry.model.name,
        "recipe": "" if entry.model.recipe == NOT_KNOWN else entry.model.recipe,
        "seed": execution.seed,
        "exposure": {name: each.exposure for name, each in entry.benchmark.sets.items() if each.exposure},
        "protocols": {name: options for name, options in execution.options.items() if name in entry.protocols},
    }
    if entry.attack is not None:
        about: dict[str, Any] = entry.attack.model_dump(include={"outliers", "runs", "search_seeds"})
        variations = [each.variation for each in entry.attack.searches]
        context["attack"] = about | {"variations": variations, "conditional": list(entry.attack.conditional)}
    return context


def _check_folder(folder: Path) -> None:
    try:
        mode = folder.lstat().st_mode
    except FileNotFoundError as error:
        raise DataError(f"{folder}: no such folder") from error
    if not S_ISDIR(mode):
        raise DataError(f"{folder}: an entry is a folder, and not a link to one")
    for each in sorted(folder.iterdir()):
        if each.name not in (ENTRY, SCORES):
            raise DataError(f"{folder}: holds {each.name!r}; an entry is {ENTRY} and {SCORES} and nothing else")


def _check_units(entry: Entry, scores: ScoreTable) -> None:
    """Every row must stand on a list, or be what a search of the entry's own attack found."""
    found: set[tuple[str, str]] = set()
    if (attack := entry.attack) is not None:
        numbers = range(attack.search_seeds)
        units = (unit_of_search(each.variation, number) for each in attack.searches for number in numbers)
        found = {(attack.outliers, unit) for unit in units}
    scored = set(scores.frame[["set", "unit"]].drop_duplicates().itertuples(index=False, name=None))
    for name, unit in sorted(scored - found):
        if unit not in LISTED_UNITS:
            raise DataError(f"set {name!r} has rows of unit {unit!r}, which no list covers")
    for name, unit in sorted(found - scored):
        raise DataError(f"set {name!r} has no rows of unit {unit!r}, which the entry says was searched")


def _check_lists(entry: Entry, scores: ScoreTable) -> None:
    found = table_lists(scores)
    for name, (role, n, hashed) in found.items():
        said = entry.benchmark.sets.get(name)
        if said is None:
            raise DataError(f"holds the set {name!r}, which the entry does not list")
        if (said.role, said.n) != (role, n):
            raise DataError(f"set {name!r} is {n} images of {role}, by the entry {said.n} of {said.role}")
        if said.list_hash != hashed:
            raise DataError(f"set {name!r}: not the images, labels or order that the entry lists (list hash differs)")
    # sets that were learned from need not be scored; those that are judged on must be
    for name, said in entry.benchmark.sets.items():
        if name not in found and said.role in JUDGED:
            raise DataError(f"the entry lists {said.role} set {name!r}, which was not scored")
