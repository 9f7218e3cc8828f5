"""CrossValidationTable: every metric of every fold and hold-out, from which all statistics of a study come."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.catalog import METRICS
from oodscope.results import scorefile

TEXT = ("kind", "training", "pair", "detector", "metric")
NUMBERS = ("repetition", "fold", "n_id", "n_ood")
DRAWS = ("id_draw", "ood_draw", "training_seed")
KINDS = ("fold", "hold_out", "crossed")
TRAININGS = ("plain", "outlier_exposure")

_KEY = ["kind", "repetition", "fold", "training", "pair", "detector", "metric", *DRAWS]
FILE = "crossval.parquet"
_WHAT = "cross-validation table"


class CrossCell(NamedTuple):
    """One experiment of a study: how the network was trained, and which sets meet (``"ID/OOD"``)."""

    training: str
    pair: str

    def __str__(self) -> str:
        return f"{self.pair}, {self.training.replace('_', ' ')}"


class CrossValidationTable:
    """One row for each fold or hold-out, cell, detector and metric.

    Parameters
    ----------
    frame : the columns
        ``kind``: ``"fold"`` of a dual cross-validation, ``"hold_out"`` of the repeated hold-out that stands for the
        truth, or ``"crossed"``: one run of a crossed design that tells the sources of variance apart;
        ``repetition``, ``fold``: which one (``fold`` is 0 unless the kind is ``"fold"``);
        ``training``: ``"plain"`` or ``"outlier_exposure"``; ``pair``: ``"ID/OOD"``; ``detector``;
        ``metric``: a name of the catalogue; ``value``; ``n_id``, ``n_ood``: test images;
        ``id_draw``, ``ood_draw``, ``training_seed``: which ID split, which OOD classes and which seed a run of the
        crossed design used, runs with equal numbers sharing them. They may be left out, and are then 0.
    metadata : JSON values, free; what produced the table.
    """

    def __init__(self, frame: pd.DataFrame, metadata: Mapping[str, Any] | None = None) -> None:
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.frame = _typed(frame)
        _check_rows(self.frame)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"CrossValidationTable({len(self)} rows, {len(self.cells)} cells, {len(self.detectors)} detectors)"

    def _repr_html_(self) -> str:
        from oodscope.runs.crossval.summary import summary  # which is made of tables

        return summary(self)._repr_html_()

    @cached_property
    def cells(self) -> list[CrossCell]:
        """Every (training, pair), outlier exposure last, pairs in order of appearance."""
        seen = self.frame[["training", "pair"]].drop_duplicates()
        cells = [CrossCell(str(training), str(pair)) for training, pair in zip(seen["training"], seen["pair"])]
        return sorted(cells, key=lambda cell: TRAININGS.index(cell.training))

    @property
    def detectors(self) -> list[str]:
        """In order of appearance."""
        return [str(name) for name in self.frame["detector"].cat.categories]

    @property
    def metrics(self) -> list[str]:
        """In order of appearance."""
        return [str(name) for name in self.frame["metric"].cat.categories]

    def folds(self, metric: str) -> NDArray[np.float64]:
        """``[repetition, fold, detector, cell]``: the repetitions of dual cross-validation that are complete."""
        return self._cube("fold", metric)

    def hold_outs(self, metric: str) -> NDArray[np.float64]:
        """``[repetition, detector, cell]``: the repetitions of the hold-out that are complete."""
        return self._cube("hold_out", metric)[:, 0]

    def crossed(self, metric: str) -> pd.DataFrame:
        """The rows of the crossed design: ``training, pair, detector, id_draw, ood_draw, training_seed, value``."""
        self._check_metric(metric)
        chosen = (self.frame["kind"] == "crossed") & (self.frame["metric"] == metric)
        columns = ["training", "pair", "detector", *DRAWS, "value"]
        return self.frame.loc[chosen, columns].reset_index(drop=True)

    def complete(self, kind: str) -> list[int]:
        """The repetitions of a kind that have every fold, cell, detector and metric; statistics use these."""
        repetitions, complete, _ = self._cubes(kind)
        return [int(number) for number in repetitions[complete]]

    def incomplete(self, kind: str) -> list[int]:
        """The repetitions that lack some of these; statistics leave them out."""
        repetitions, complete, _ = self._cubes(kind)
        return [int(number) for number in repetitions[~complete]]

    def save(self, folder: Path | str) -> Path:
        """Write ``crossval.parquet`` to a folder, values exact to the last bit; the path of the file."""
        path = Path(folder) / FILE
        scorefile.write(path, self.frame, self.metadata, _WHAT)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> "CrossValidationTable":
        """Read what ``save`` wrote, and check it as strictly as a new table."""
        path = Path(folder) / FILE
        frame, metadata = scorefile.read(path, _WHAT)
        try:
            return cls(frame, metadata)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def concat(cls, tables: Iterable["CrossValidationTable"]) -> "CrossValidationTable":
        """The rows of several tables of one study; the metadata is that of the first. A row twice is an error."""
        parts = list(tables)
        if not parts:
            raise DataError("nothing to join: there is no cross-validation table")
        # categories of different tables differ; as text they join
        frames = [part.frame.astype(dict.fromkeys(TEXT, str)) for part in parts]
        return cls(pd.concat(frames, ignore_index=True), parts[0].metadata)

    def _check_metric(self, metric: str) -> None:
        if metric not in self.metrics:
            raise UnknownNameError("metric", metric, self.metrics)

    def _cube(self, kind: str, metric: str) -> NDArray[np.float64]:
        self._check_metric(metric)
        _, complete, values = self._cubes(kind)
        if not complete.any():
            raise DataError(f"the table holds no complete repetition of kind {kind!r}")
        return np.asarray(values[self.metrics.index(metric), complete])

    def _cubes(self, kind: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
        if kind not in self._dense:
            self._dense[kind] = self._densify(kind)
        return self._dense[kind]

    @cached_property
    def _dense(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]]:
        return {}

    def _densify(self, kind: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
        """Repetition numbers, which of them are complete, and ``[metric, repetition, fold, detector, cell]``."""
        rows = self.frame[(self.frame["kind"] == kind).to_numpy()]
        repetitions, repetition = np.unique(rows["repetition"].to_numpy(), return_inverse=True)
        folds, fold = np.unique(rows["fold"].to_numpy(), return_inverse=True)
        numbers = pd.MultiIndex.from_tuples([tuple(cell) for cell in self.cells])
        cell = numbers.get_indexer(pd.MultiIndex.from_arrays([rows["training"].astype(str), rows["pair"].astype(str)]))
        shape = (len(self.metrics), len(repetitions), max(len(folds), 1), len(self.detectors), len(self.cells))
        values = np.full(shape, np.nan)
        metric, detector = rows["metric"].cat.codes.to_numpy(), rows["detector"].cat.codes.to_numpy()
        values[metric, repetition, fold, detector, cell] = rows["value"].to_numpy()
        return repetitions, ~np.isnan(values).any(axis=(0, 2, 3, 4)), values


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with the types of the table; the few distinct names become categories to stay small."""
    frame = frame.reset_index(drop=True)
    for name in (*TEXT, *NUMBERS, "value"):
        if name not in frame:
            raise DataError(f"the cross-validation table has no column {name!r}")
    if strangers := [name for name in frame if name not in {*TEXT, *NUMBERS, *DRAWS, "value"}]:
        raise DataError(f"column {strangers[0]!r} does not belong to a cross-validation table")
    typed: dict[str, Any] = {}
    for name in TEXT:
        if frame[name].isna().any():
            raise DataError(f"column {name!r} has an empty entry in row {int(frame[name].isna().to_numpy().argmax())}")
        text = frame[name].astype(str)
        typed[name] = pd.Categorical(text, categories=text.unique())
    for name in (*NUMBERS, *DRAWS):
        if name not in frame:
            typed[name] = np.zeros(len(frame), dtype=np.int64)
        elif not pd.api.types.is_integer_dtype(frame[name].dtype):
            raise DataError(f"column {name!r} must hold integers, not {frame[name].dtype}")
        else:
            typed[name] = frame[name].to_numpy(dtype=np.int64)
    typed["value"] = frame["value"].to_numpy(dtype=np.float64)
    order = ("kind", "repetition", "fold", "training", "pair", "detector", "metric", "value", "n_id", "n_ood", *DRAWS)
    return pd.DataFrame({name: typed[name] for name in order}, index=range(len(frame)))


def _check_rows(frame: pd.DataFrame) -> None:
    if frame.empty:
        raise DataError("the cross-validation table is empty")
    for column, known in (("kind", KINDS), ("training", TRAININGS), ("metric", list(METRICS))):
        if unknown := [name for name in frame[column].cat.categories if name not in known]:
            raise UnknownNameError(column, unknown[0], known)
    broken = ~np.isfinite(frame["value"].to_numpy())
    if broken.any():
        raise DataError(f"{broken.sum()} values are NaN or infinite; the first is {_row(frame, int(broken.argmax()))}")
    twice = frame.duplicated(_KEY).to_numpy()
    if twice.any():
        raise DataError(f"the table holds {_row(frame, int(twice.argmax()))} twice")


def _row(frame: pd.DataFrame, number: int) -> str:
    row = frame.iloc[number]
    return (
        f"{row['metric']} of {row['detector']} on {row['pair']} ({row['training']}), "
        f"{row['kind']} {row['repetition']}.{row['fold']}"
    )
