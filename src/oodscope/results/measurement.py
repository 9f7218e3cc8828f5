"""Measurement: one number, with everything needed to say what it means."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np

from oodscope.base.errors import DataError, OodscopeError, did_you_mean
from oodscope.base.files import atomic_path
from oodscope.base.hashing import canonical_json
from oodscope.metrics.metric import Tuning

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One tidy row: a metric of a detector on one OOD set, or on the mean of a group, under one protocol.

    The accuracy of the classifier is a row too: ``metric="accuracy"`` and no detector. A number that cannot
    be computed has no row, so ``value`` is always finite; an end of the interval or a cost may be missing
    (``None``; NaN is taken as missing).

    Parameters
    ----------
    run : id of the run that produced it.
    recipe : how the model was trained; empty if that is not known.
    detector : id of the detector, a column of the run's ``ScoreTable``; empty for accuracy.
    params : the parameters used, after tuning. JSON values only, so tuples become lists.
    tuning : how the parameters were chosen.
    set : name of the set, or ``"mean"`` for the mean over the sets of ``group``.
    group : ``near``, ``far``, ``csid`` or ``id``; or a group of the protocol's own, such as ``label_shift``.
    value : between 0 and 1 for every rate, never in percent.
    low, high : ends of the interval made by the method ``interval`` at confidence ``level``: where the value
        would lie for other images.
    class_value, class_low, class_high : the value with every sampled OOD class weighing the same, and where it would
        lie for other OOD classes, at the same level; missing where nothing can be said of them.
    rank_low, rank_high, may_be_best : best and worst rank among the detectors of its run tuned alike that paired tests
        allow for other images of these classes, and whether it may be the best (1) or not (0).
    class_rank_low, class_rank_high, class_may_be_best : the same for other OOD classes.
    fit_seconds, microseconds_per_image, peak_mib : what the detector cost: its fit, each image that it scored,
        and the memory that either took at its worst.
    passes : through the network for one image, the plain one that all share included; a backward pass counts as two.
    exposure : which of the images the network has met before, set by set; empty if none is known.
    rejected_correct : the share of the correct images of ``id_test`` that the threshold of the row rejects, where a
        threshold decides: detectors are comparable where they reject the same share.
    unranked : why the value is shown and not ranked, such as a threshold on images that the detector was fitted on.
    """

    run: str
    benchmark: str
    benchmark_version: str
    model: str
    recipe: str = ""
    detector: str = ""
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tuning: Tuning = "default"
    protocol: str
    set: str
    group: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    interval: str = "none"
    level: float | None = None
    class_value: float | None = None
    class_low: float | None = None
    class_high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    may_be_best: int | None = None
    class_rank_low: int | None = None
    class_rank_high: int | None = None
    class_may_be_best: int | None = None
    n_id: int | None = None
    n_ood: int | None = None
    seed: int | None = None
    fit_seconds: float | None = None
    microseconds_per_image: float | None = None
    peak_mib: float | None = None
    passes: int | None = None
    exposure: str = ""
    rejected_correct: float | None = None
    unranked: str = ""

    def __post_init__(self) -> None:
        if self.tuning not in get_args(Tuning):
            raise DataError(f"{self._where()}: tuning {self.tuning!r} is none of {get_args(Tuning)}")
        clean: dict[str, Any] = {name: _number(getattr(self, name)) for name in FLOATS}
        clean |= {name: _count(getattr(self, name)) for name in COUNTS}
        clean["params"] = self._plain_params()
        clean["unranked"] = self.unranked or ""
        for name, value in clean.items():
            object.__setattr__(self, name, value)
        if self.value is None or math.isinf(self.value):
            raise DataError(f"{self._where()}: the value is not a finite number; leave the row out")

    def _plain_params(self) -> Any:
        try:
            return json.loads(canonical_json(self.params))
        except (TypeError, ValueError) as error:
            raise DataError(f"{self._where()}: params must be plain JSON values: {error}") from error

    def _where(self) -> str:
        return f"{self.metric} of {self.detector or 'the classifier'} on {self.set} ({self.protocol})"


FILE = "measurements.parquet"
COLUMNS = tuple(f.name for f in fields(Measurement))
FLOATS = (
    *("value", "low", "high", "level", "class_value", "class_low", "class_high"),
    *("fit_seconds", "microseconds_per_image", "peak_mib", "rejected_correct"),
)
RANKS = ("rank_low", "rank_high", "may_be_best", "class_rank_low", "class_rank_high", "class_may_be_best")
COUNTS = (*RANKS, "n_id", "n_ood", "seed", "passes")
LATER = ("class_value", "class_low", "class_high", *RANKS, "peak_mib", "passes", "rejected_correct", "unranked")
"""Fields that older results lack; there they are missing, like any number that was not measured."""


def check_fields(names: Iterable[str]) -> None:
    """Refuse a name that is not a field of a measurement."""
    for name in names:
        if name not in COLUMNS:
            raise OodscopeError(f"a measurement has no field {name!r}.{did_you_mean(name, COLUMNS)}")


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _count(value: Any) -> int | None:
    # a gap is None, NaN or the NA of pandas, which is not imported for this
    return None if value is None or str(value) in ("nan", "<NA>") else int(value)


class Measurements(Sequence[Measurement]):
    """Measurements in order, never changed in place: ``+`` and ``filter`` give new ones."""

    def __init__(self, rows: Iterable[Measurement] = ()) -> None:
        self._rows = tuple(rows)

    @classmethod
    def from_rows(cls, rows: Iterable[Measurement | Mapping[str, Any]]) -> "Measurements":
        """From measurements, or from mappings with the fields of one."""
        return cls(row if isinstance(row, Measurement) else Measurement(**row) for row in rows)

    @classmethod
    def from_dataframe(cls, frame: "pd.DataFrame") -> "Measurements":
        """The inverse of ``to_dataframe``; a frame of an older version lacks what was not measured then."""
        lacking = [name for name in LATER if name not in frame.columns]
        if lacking and set(frame.columns) | set(lacking) == set(COLUMNS):
            frame = frame.assign(**dict.fromkeys(lacking))[list(COLUMNS)]
        if list(frame.columns) != list(COLUMNS):
            odd = sorted(set(COLUMNS) ^ set(map(str, frame.columns))) or "in a wrong order"
            raise DataError(f"not a table of measurements: missing or unknown columns {odd}")
        columns = {name: _plain(frame[name]) for name in COLUMNS}
        columns["params"] = [json.loads(params) for params in columns["params"]]
        return cls(Measurement(**dict(zip(COLUMNS, row))) for row in zip(*columns.values()))

    def to_dataframe(self) -> "pd.DataFrame":
        """One row each, one column per field; ``params`` as JSON text, so that one can group by it."""
        import pandas as pd  # late: nobody should wait for it who only imports this

        columns: dict[str, Any] = {name: [getattr(row, name) for row in self._rows] for name in COLUMNS}
        columns["params"] = [canonical_json(params) for params in columns["params"]]
        # typed one by one: a column of integers with a gap would pass through float64 and lose digits
        columns |= {name: pd.array(columns[name], dtype="Int64") for name in COUNTS}
        columns |= {name: np.array(columns[name], dtype=np.float64) for name in FLOATS}
        return pd.DataFrame(columns)

    def save(self, folder: Path) -> str:
        """Write them as Parquet, and as CSV for people; the name of the file that ``load`` reads."""
        frame = self.to_dataframe()
        with atomic_path(folder / FILE) as temporary:
            frame.to_parquet(temporary, compression="zstd", index=False)
        with atomic_path(folder / "measurements.csv") as temporary:
            frame.to_csv(temporary, index=False)
        return FILE

    @classmethod
    def load(cls, folder: Path) -> "Measurements":
        """Read what ``save`` wrote."""
        import pandas as pd
        import pyarrow as pa

        try:
            return cls.from_dataframe(pd.read_parquet(folder / FILE, partitioning=None))
        except (pa.ArrowException, OodscopeError) as error:
            raise DataError(f"{folder / FILE}: {error}") from error

    def filter(self, **equals: Any) -> "Measurements":
        """Those whose fields equal all the given values: ``filter(metric="auroc", group="near")``."""
        check_fields(equals)
        rows: Sequence[Measurement] = self._rows
        for name, value in equals.items():
            field = attrgetter(name)
            rows = [row for row in rows if field(row) == value]
        return Measurements(rows)

    def distinct(self, name: str) -> list[Any]:
        """The values of one field, in order of appearance."""
        check_fields([name])
        return list(dict.fromkeys(getattr(row, name) for row in self._rows))

    def __add__(self, other: "Measurements") -> "Measurements":
        return Measurements((*self._rows, *other))

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> "Measurements": ...
    def __getitem__(self, index: int | slice) -> "Measurement | Measurements":
        return Measurements(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measurements) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        return f"Measurements({len(self)} rows)"


def _plain(column: "pd.Series[Any]") -> list[Any]:
    """Python's own values, ``None`` for a gap."""
    values: list[Any] = column.tolist()
    return [None if gap else value for gap, value in zip(column.isna(), values)] if column.hasnans else values
