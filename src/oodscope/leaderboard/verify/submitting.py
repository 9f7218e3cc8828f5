"""Submit: one detector of a run as an entry of a board."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from oodscope.base.config import parse
from oodscope.base.errors import DataError, UnknownNameError, UsageError
from oodscope.leaderboard.records.entry import SCHEMA, Entry, Track
from oodscope.leaderboard.records.folder import write_entry
from oodscope.leaderboard.verify.about import About
from oodscope.leaderboard.verify.describing import (
    describe_benchmark,
    describe_claims,
    describe_detector,
    describe_execution,
    describe_model,
    describe_search,
    describe_thresholds,
)
from oodscope.leaderboard.verify.examining import protocol_versions
from oodscope.leaderboard.verify.naming import check_id
from oodscope.leaderboard.verify.tracks import check_track
from oodscope.results.runfile import read_runfile
from oodscope.results.scoretable import COLUMNS, ScoreTable
from oodscope.runs.attack.run import Attack, SearchedPair
from oodscope.runs.evaluation.run import Result


def submit(
    run: Path | str,
    board: Path | str,
    *,
    id: str,
    method: str,
    track: Track | None = None,
    detector: str | None = None,
    group: str = "",
    about: About | None = None,
) -> Path:
    """Write one detector of a run as an entry; returns its folder.

    Nearly everything comes from what the run stored; see ``About`` for the rest.

    Parameters
    ----------
    run : folder of an evaluation or of an attack.
    board : folder of entries.
    id : of the entry; also its folder.
    track : by default what the recorded training says: ``outlier-data`` where it learned from outliers, ``training``
        where it is a method of its own, ``post-hoc`` otherwise. One that contradicts the training is refused.
    detector : which column of the run; may be left out where there is one.
    group : shared by entries that differ only in the seed of the training.
    """
    try:
        check_id(id)
    except DataError as error:
        raise UsageError(str(error)) from error  # of the submitter, where an entry with it would be bad data
    about = about or About()
    result, searches = _open(Path(run))
    chosen = _chosen(detector, result.scores.detectors)
    scores = one_detector(result.scores, chosen)
    content: dict[str, Any] = {
        "schema_version": SCHEMA,
        "id": id,
        "method": method,
        "group": group,
        "submitted": datetime.now(UTC).isoformat(timespec="seconds"),
        "track": check_track(track, scores.context.recipe),
        **{name: getattr(about, name) for name in ("authors", "paper", "code", "weights", "reported", "notes")},
        "benchmark": describe_benchmark(result.record, scores, about),
        "protocols": protocol_versions(result.record.protocols),
        "model": describe_model(result.record, scores, about),
        "detector": describe_detector(result.record, scores, chosen, about),
        "execution": describe_execution(result.record, scores),
        "thresholds": list(describe_thresholds(result.measurements, chosen)),
        "attack": _attack(scores, [each for each in searches if each.detector == chosen]),
        "claims": list(describe_claims(result.measurements, chosen, result.record.protocols)),
        "scores": {"sha256": "0" * 64, "rows": len(scores)},  # filled in once the file is written
    }
    return write_entry(board, parse(Entry, content, str(run)), scores)


def one_detector(scores: ScoreTable, detector: str) -> ScoreTable:
    """The columns of one detector, without the description of the others."""
    frame: pd.DataFrame = scores.frame[[*COLUMNS, detector]]
    known = scores.context.plain()
    shared = ("recipe", "attack", "protocols", "training_rows")
    return ScoreTable(
        frame,
        {"detectors": {detector: known["detectors"][detector]}}
        | {name: known[name] for name in shared if name in known},
    )


def _open(run: Path) -> tuple[Result, Sequence[SearchedPair]]:
    if read_runfile(run).kind == Attack.kind:
        attack = Attack.load(run)
        return attack.result, attack.searches
    return Result.load(run), ()


def _chosen(asked: str | None, known: Sequence[str]) -> str:
    if asked is None:
        if len(known) > 1:
            raise DataError(f"an entry is of one detector; the run has {', '.join(known)}. Name one: --detector")
        return known[0]
    if asked not in known:
        raise UnknownNameError("detector", asked, known, f"Scored there: {', '.join(known)}")
    return asked


def _attack(scores: ScoreTable, searches: Sequence[SearchedPair]) -> dict[str, Any] | None:
    if not searches:
        return None
    recorded = scores.context.extra["attack"]
    return {
        "outliers": recorded["outliers"],
        "runs": recorded["runs"],
        "search_seeds": recorded.get("search_seeds", 1),
        "searches": [describe_search(each, recorded) for each in searches],
        "conditional": recorded["conditional"],
    }
