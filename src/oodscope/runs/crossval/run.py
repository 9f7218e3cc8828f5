"""CrossValidation: a cross-validation, with the table of every metric of every fold and hold-out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.document.chapter import Chapter
from oodscope.document.table import Table
from oodscope.document.trial import Trial, leaders
from oodscope.document.weakness import Subject, Weakness
from oodscope.metrics.catalog import METRICS
from oodscope.results import scorefile
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run, choose_table
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.crossval.details import FoldDetails

TEXT = ("kind", "training", "pair", "detector", "metric")
NUMBERS = ("repetition", "fold", "n_id", "n_ood")
DRAWS = ("id_draw", "ood_draw", "training_seed")
KINDS = ("fold", "hold_out", "crossed")
TRAININGS = ("plain", "outlier_exposure")

HEADLINE = "auroc"
"""By which detectors are ranked across folds, where it was measured."""

_KEY = ["kind", "repetition", "fold", "training", "pair", "detector", "metric", *DRAWS]
FILE = "crossval.parquet"
PROTOCOL = "crossval"
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
        ``kind``: ``"fold"`` of a cross-validation, ``"hold_out"`` of the repeated hold-out that stands for the
        truth, or ``"crossed"``: one run of a crossed design that separates the sources of variance;
        ``repetition``, ``fold``: which one (``fold`` is 0 unless the kind is ``"fold"``);
        ``training``: ``"plain"`` or ``"outlier_exposure"``; ``pair``: ``"ID/OOD"``; ``detector``;
        ``metric``: a name of the catalogue; ``value``; ``n_id``, ``n_ood``: test images;
        ``id_draw``, ``ood_draw``, ``training_seed``: which ID split, which OOD classes and which seed a run of the
        crossed design used, runs with equal numbers sharing them. They may be left out, and are then 0.
    metadata : JSON values, free; what produced the table.
    details : accuracies of the networks and values of single OOD classes, where they are known.
    """

    def __init__(
        self, frame: pd.DataFrame, metadata: Mapping[str, Any] | None = None, details: FoldDetails | None = None
    ) -> None:
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.details = details
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
        """``[repetition, fold, detector, cell]``: the repetitions of cross-validation that are complete."""
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
        """Write ``crossval.parquet``, exact to the last bit, and the details to a folder; the path of the first."""
        path = Path(folder) / FILE
        if self.details is not None:
            self.details.save(Path(folder))
        scorefile.write(path, self.frame, self.metadata, _WHAT)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> "CrossValidationTable":
        """Read what ``save`` wrote, and check it as strictly as a new table."""
        path = Path(folder) / FILE
        frame, metadata = scorefile.read(path, _WHAT)
        try:
            return cls(frame, metadata, FoldDetails.load(Path(folder)))
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
        known = [part.details for part in parts if part.details is not None]
        details = FoldDetails.concat(known) if len(known) == len(parts) else None
        return cls(pd.concat(frames, ignore_index=True), parts[0].metadata, details)

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


@dataclass(frozen=True)
class CrossValidation(Run):
    """The table of all finished draws, what was run, and whether draws are missing.

    Parameters
    ----------
    unfinished : how many draws of how many ID sets are left, because the time was up.
    folder : where it is stored, with the scores of every draw.
    """

    kind: ClassVar[str] = "crossval"

    draws: CrossValidationTable
    record: RunRecord
    unfinished: int = 0
    folder: Path | None = None

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """Every score of every cell, by the cell's name."""
        return {str(cell): table for cell, table in self.cell_scores().items()}

    def cell_scores(self) -> dict[CrossCell, ScoreTable]:
        """Every score of every cell, as they are stored: ID validation, ID test and OOD test images of each draw."""
        from oodscope.runs.crossval.scores import stored_scores  # which are of tables

        if self.folder is None:
            raise DataError("this cross-validation was not stored, so its scores are not known")
        return stored_scores(self.folder, self.draws)

    def with_metrics(self, *metrics: str) -> CrossValidationTable:
        """The table with further metrics of the catalogue, computed from the stored scores; nothing is trained."""
        from oodscope.runs.crossval.scores import with_metrics

        return with_metrics(self.draws, self.cell_scores(), metrics)

    @property
    def measurements(self) -> Measurements:
        """The estimate of every metric for each detector and cell: ``set`` is the pair, ``group`` the training."""
        from oodscope.runs.crossval.trials import finished_studies  # which are made of tables

        record = self.record
        return Measurements(
            Measurement(
                run=record.id,
                benchmark=record.benchmark,
                benchmark_version=record.benchmark_version,
                model=record.model,
                protocol=PROTOCOL,
                detector=detector,
                set=cell.pair,
                group=cell.training,
                metric=study.metric,
                value=float(study.estimate[row, column]),
                seed=record.seed,
            )
            for study in finished_studies(self.draws)
            for row, detector in enumerate(study.detectors)
            for column, cell in enumerate(study.cells)
        )

    def tables(self) -> Mapping[str, Table]:
        """Every table of the headline metric, then those over all metrics."""
        return self._sheets(HEADLINE if HEADLINE in self.draws.metrics else self.draws.metrics[0])

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """One table of one metric; the estimate of the headline metric in every cell by default."""
        return choose_table(self.tables() if metric is None else self._sheets(metric), name)

    def _sheets(self, metric: str) -> dict[str, Table]:
        from oodscope.runs.crossval.fidelity import accuracies
        from oodscope.runs.crossval.sheets import metric_sheets, overall_sheets  # which are made of tables
        from oodscope.runs.crossval.study import study_metric

        chosen = study_metric(self.draws, metric)
        studies = [study_metric(self.draws, name) for name in self.draws.metrics]
        networks = [sheet for sheet in [accuracies(self.draws)] if sheet is not None]
        return {sheet.name: sheet for sheet in (*metric_sheets(chosen), *overall_sheets(studies), *networks)}

    def trials(self) -> Sequence[Trial]:
        """The mean over all cells, with the interval for other OOD classes where folds were made."""
        from oodscope.runs.crossval.trials import trials_of

        return list(trials_of(self.draws))

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        """In which cell the folds of a detector spread most; every fold has its own network."""
        from oodscope.runs.crossval.trials import weaknesses_of

        return list(weaknesses_of(self.draws, subject))

    def chapter(self) -> Chapter:
        """The mean of each detector, and its estimate in every cell."""
        from oodscope.runs.crossval.figures import estimates
        from oodscope.runs.crossval.summary import summary
        from oodscope.runs.crossval.trials import finished_study

        study = finished_study(self.draws)
        figures = () if study is None else (estimates(study),)
        blocks = (summary(self.draws), *figures)
        return Chapter("Cross-validation", self.kind, leaders(self.trials()), blocks)

    def _repr_html_(self) -> str:
        return self.draws._repr_html_()

    def save(self, folder: Path | str) -> Path:
        """Write the table and ``run.json``; a cross-validation that went on replaces what it had before."""
        folder = Path(folder)
        name = self.draws.save(folder).name
        return write_runfile(folder, self.kind, self.record, [name], {"unfinished": self.unfinished})

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        return cls(CrossValidationTable.load(folder), file.record, int(file.about["unfinished"]), folder)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with the types of the table; the few distinct names become categories to stay small."""
    frame = frame.reset_index(drop=True)
    for name in (*TEXT, *NUMBERS, "value"):
        if name not in frame:
            raise DataError(f"the cross-validation table has no column {name!r}")
    if unknown := [name for name in frame if name not in {*TEXT, *NUMBERS, *DRAWS, "value"}]:
        raise DataError(f"column {unknown[0]!r} does not belong to a cross-validation table")
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
