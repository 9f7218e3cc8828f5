"""Evaluate scores: a table with a row per sample and a column per detector, made by anything."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import UNLABELLED
from oodscope.metrics.interval import Intervals, check_intervals
from oodscope.metrics.metric import Tuning
from oodscope.protocols.registry import Asked, read_protocols
from oodscope.results.record import SetRecord
from oodscope.results.scoretable import COLUMNS, NUMBERS, ROLES, TEXT, ScoreTable
from oodscope.runs.evaluation.pipeline import check_tuning, measure_all, record_of, run_context
from oodscope.runs.evaluation.run import Result

NOTE = "evaluated from scores: the fingerprint of a set is a hash of its rows, and no detector was run"
_LOOKS_LIKE = 0.8


def evaluate_scores(
    scores: pd.DataFrame | Path | str,
    *,
    detectors: Sequence[str] | None = None,
    protocols: Asked | Iterable[Asked] = ("standard",),
    name: str = "scores",
    model: str = "scores",
    tune: Tuning = "default",
    seed: int = 0,
    intervals: Intervals = "full",
    recipe: str = "",
) -> Result:
    """Tables with intervals, report and comparisons from scores alone.

    The same result as from ``evaluate``, without a network or a detector::

        frame = pd.DataFrame({"set": [...], "role": [...], "mine": [...], "msp": [...]})
        print(oods.evaluate_scores(frame).table())

    Parameters
    ----------
    scores : a frame, or the path of a ``.csv`` or ``.parquet`` file, with a row per sample. ``set``: name of its set;
        ``role``: ``id_test``, ``near``, ``far``, ``csid``, ``id_train`` or ``id_val``; optional: ``label`` and
        ``prediction`` in the ID classes, ``own_class`` in those of the set, ``sample_id`` (the number in its set unless
        given). Every other column holds the scores of a detector, larger = more OOD.
    detectors : which of them; all by default.
    protocols, seed, intervals, recipe : see ``evaluate``.
    name, model : how tables call the data and the network.
    tune : how the parameters of the detectors were chosen, for the record; see ``evaluate``.

    Examples
    --------
    >>> import pandas as pd
    >>> sets = {"set": ["test"] * 30 + ["letters"] * 20, "role": ["id_test"] * 30 + ["near"] * 20}
    >>> frame = pd.DataFrame({**sets, "mine": np.arange(50.0)})
    >>> oods.evaluate_scores(frame).table().rows[0].name
    'mine'
    """
    asked = read_protocols(protocols)
    check_tuning(tune)
    check_intervals(intervals)
    where = "the scores" if isinstance(scores, pd.DataFrame) else str(scores)
    frame = scores if isinstance(scores, pd.DataFrame) else _read(Path(scores))
    try:
        whole = _completed(frame, detectors)
        names = [column for column in whole.columns if column not in COLUMNS]
        held = whole[["role", "set", "sample_id", "label", "own_class"]].astype(str).to_numpy().tolist()
        context = run_context(name, fingerprint(held)[:12], model, asked, seed, recipe)
        context["intervals"] = intervals
        context["detectors"] = {each: {"name": each, "tuning": tune} for each in names}
        table = ScoreTable(whole, context)
        _check_sets(table)
    except UnknownNameError:
        raise
    except OodscopeError as error:
        raise DataError(f"{where}: {error}") from error
    record = record_of(
        table,
        sets=_set_records(table),
        transform="not known: scores were given",
        head="not known: scores were given",
        precision="float64",
        device="none",
        protocols=[protocol.name for protocol in asked],
        notes=[NOTE, *(note for protocol in asked for note in protocol.notes(table))],
    )
    return Result(record, measure_all(asked, table), table)


def _read(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            # not pandas, which would take a folder called "seed=0" for a column
            with pq.ParquetFile(path) as file:
                frame: pd.DataFrame = file.read().to_pandas()
            return frame
        if path.suffix == ".csv":
            # text is never missing, so a set may be called "NA"; every number comes back as it was written
            text = csv.ConvertOptions(column_types=dict.fromkeys(TEXT, pa.string()), null_values=["", "nan", "NaN"])
            table: pd.DataFrame = csv.read_csv(path, convert_options=text).to_pandas()
            return table
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not readable ({str(error).splitlines()[0]})") from error
    raise DataError(f"{path}: scores are read from .csv and .parquet files")


def _completed(frame: pd.DataFrame, detectors: Sequence[str] | None) -> pd.DataFrame:
    """The columns of a score table: those given, and what stands for the others."""
    frame = frame.reset_index(drop=True).rename(columns=str)
    if frame.columns.has_duplicates:
        raise DataError(f"two columns are called {frame.columns[frame.columns.duplicated()][0]!r}")
    scored = [name for name in frame.columns if name not in COLUMNS]
    for name in scored:
        if near := get_close_matches(name.lower(), COLUMNS, n=1, cutoff=_LOOKS_LIKE):
            raise DataError(f"column {name!r} would count as a detector; if it is {near[0]!r}, call it so")
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise DataError(f"column {name!r} holds no numbers; every column but {', '.join(COLUMNS)} is a detector")
    for name in ("set", "role"):
        if name not in frame:
            raise DataError(f"there is no column {name!r}; set and role are needed, and a column for each detector")
    for name in detectors or ():
        if name not in scored:
            raise UnknownNameError("detector", name, scored, f"Scored there: {', '.join(scored)}")
    if not scored:
        raise DataError(f"there is no column of scores beside {', '.join(frame.columns)}")
    if len(frame) == 0:
        raise DataError("there are no rows")
    for role in frame["role"].astype(str).unique():
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES, f"Known: {', '.join(ROLES)}")
    whole = {name: frame[name] for name in COLUMNS if name in frame}
    whole.setdefault("sample_id", frame.groupby("set", sort=False).cumcount().astype(str))
    whole.setdefault("unit", pd.Series("all", index=frame.index))
    for name in NUMBERS:
        instead = whole["label"] if name == "own_class" and "label" in whole else pd.Series(UNLABELLED, frame.index)
        whole[name] = _whole_numbers(name, whole.get(name, instead))
    chosen = list(detectors or scored)
    return pd.DataFrame(whole | {name: frame[name].astype("float64") for name in chosen})


def _whole_numbers(name: str, values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Classes as integers; an empty field of a CSV file, where OOD samples have no label, is not a class."""
    if not pd.api.types.is_numeric_dtype(values.dtype):
        raise DataError(f"column {name!r} must hold integers, not {values.dtype}")
    filled = values.fillna(UNLABELLED)
    if not (filled == filled.round()).all():
        raise DataError(f"column {name!r} must hold integers; it has fractions")
    return filled.astype("int64")


def _check_sets(table: ScoreTable) -> None:
    if not table.sets("id_test"):
        raise DataError("no row has the role 'id_test'; numbers compare OOD sets with it")
    roles = table.frame[["set", "role"]].drop_duplicates()
    if (twice := roles["set"].duplicated().to_numpy()).any():
        raise DataError(f"set {roles['set'].iloc[int(twice.argmax())]!r} has rows of two roles; a set has one")


def _set_records(table: ScoreTable) -> dict[str, SetRecord]:
    found = {}
    for name in table.sets():
        rows = table.frame[(table.frame["set"] == name).to_numpy()]
        ids, numbers = rows["sample_id"].tolist(), rows[[*NUMBERS, *table.detectors]].to_numpy()
        found[name] = SetRecord(role=str(rows["role"].iloc[0]), n=len(rows), fingerprint=fingerprint(ids, numbers))
    return found
