"""The scores of a cross-validation: one Parquet file per unit, and a score table per cell made of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from oodscope.base.errors import DataError
from oodscope.results import scorefile
from oodscope.results.scoretable import COLUMNS, TEXT, ScoreTable
from oodscope.runs.crossval.draws import Draw
from oodscope.runs.crossval.protocol import CrossValidated
from oodscope.runs.crossval.run import CrossCell, CrossValidationTable

FOLDER = "scores"
KIND = "cross-validation scores"


def read_unit(path: Path) -> pd.DataFrame:
    """The scores of one unit: the columns of a score table, and ``training`` and ``pair`` of each row.

    The ID images of a plain network serve all pairs of its ID set; they are stored once, with an empty pair.
    """
    return scorefile.read(path, KIND)[0]


def stored_scores(folder: Path | str, table: CrossValidationTable | None = None) -> dict[CrossCell, ScoreTable]:
    """The scores of every cell of a study, from the folder that ``cross_validate`` wrote; ``unit`` is the draw.

    Parameters
    ----------
    table : of the same folder; read there unless given.
    """
    table = table or CrossValidationTable.load(folder)
    paths = sorted((Path(folder) / FOLDER).glob("*.parquet"))
    if not paths:
        raise DataError(f"{folder}: no scores are stored here")
    units = [read_unit(path) for path in paths]
    return {cell: _cell_scores(units, cell, table.metadata) for cell in table.cells}


def _cell_scores(units: Iterable[pd.DataFrame], cell: CrossCell, metadata: Mapping[str, Any]) -> ScoreTable:
    parts = []
    for frame in units:
        pairs, trained = frame["pair"].astype(str), (frame["training"] == cell.training).to_numpy()
        own = trained & (pairs == cell.pair).to_numpy()
        if own.any():
            shared = trained & (pairs == "").to_numpy()
            parts.append(frame[own | shared].drop(columns=["training", "pair"]))
    if not parts:
        raise DataError(f"no scores of {cell} are stored")
    whole = pd.concat([part.astype(dict.fromkeys(TEXT, str)) for part in parts], ignore_index=True)
    detectors = {name: metadata["detectors"][name] for name in whole.columns if name not in COLUMNS}
    context = {
        "benchmark": cell.pair,
        "model": str(metadata["trainer"]["model"]),
        "seed": metadata["plan"]["seed"],
        "detectors": detectors,
        "training": cell.training,
    }
    return ScoreTable(whole, context)


def with_metrics(
    table: CrossValidationTable, scores: Mapping[CrossCell, ScoreTable], metrics: Sequence[str]
) -> CrossValidationTable:
    """The table with further metrics of the catalogue, computed from the stored scores alone."""
    protocol = CrossValidated(extra_metrics=[name for name in metrics if name not in table.metrics])
    values = {
        (cell.training, cell.pair, row.set, row.detector, row.metric): row.value
        for cell, each in scores.items()
        for row in protocol.measure(each)
    }
    frame = table.frame.astype(dict.fromkeys(("kind", "training", "pair", "detector", "metric"), str))
    first = frame[(frame["metric"] == table.metrics[0]).to_numpy()]
    parts = [frame]
    for name in protocol.extra_metrics:
        rows: Any = first.itertuples()
        found = [
            values[row.training, row.pair, Draw(row.kind, row.repetition, row.fold).name, row.detector, name]
            for row in rows
        ]
        parts.append(first.assign(metric=name, value=found))
    return CrossValidationTable(pd.concat(parts, ignore_index=True), table.metadata, table.details)
