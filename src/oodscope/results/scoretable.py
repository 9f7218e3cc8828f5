"""ScoreTable: every score of every image, from which every number on every page can be recomputed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.results import scorefile
from oodscope.results.context import ScoreContext, read_context

if TYPE_CHECKING:
    import pandas as pd

TEXT = ("sample_id", "set", "role", "unit")
NUMBERS = ("label", "own_class", "prediction")
COLUMNS = ("sample_id", "set", "role", "label", "own_class", "prediction", "unit")
ROLES = ("id_train", "id_val", "id_test", "near", "far", "csid")
JUDGED = ("id_test", "near", "far", "csid")
"""The roles that numbers are computed from; the others are learned from."""


class ScoreTable:
    """One row per image, one float64 column per detector. Larger score = more OOD.

    Parameters
    ----------
    frame : the columns ``sample_id, set, role, label, own_class, prediction, unit`` and one per detector.
        ``label`` is in the classes of the classifier, -1 for OOD images; ``own_class`` in those of the set;
        ``unit`` identifies repetitions (a fold, a seed), and a sample occurs once per set and unit.
    context : what the columns are: a :class:`ScoreContext`, or its plain values. ``context.detectors`` describes each
        column of scores.

    Examples
    --------
    >>> result.scores.sets("near"), result.scores.scores("msp", set="snow").shape
    (['static', 'snow'], (40,))
    """

    def __init__(self, frame: "pd.DataFrame", context: ScoreContext | Mapping[str, Any]) -> None:
        self.context = read_context(context)
        _check_columns(list(frame.columns), list(self.context.detectors))
        self.detectors: list[str] = [str(name) for name in frame.columns if name not in COLUMNS]
        self.frame = _typed(frame, self.detectors)
        _check_rows(self.frame)
        for detector in self.detectors:
            _check_finite(self.frame, detector)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"ScoreTable({len(self)} samples, {len(self.sets())} sets, {len(self.detectors)} detectors)"

    def sets(self, role: str | None = None) -> list[str]:
        """The sets with this role (all sets by default), in order of appearance."""
        names = self.frame["set"] if role is None else self.frame.loc[self.frame["role"] == role, "set"]
        return [str(name) for name in names.unique()]

    def scores(self, detector: str, role: str | None = None, set: str | None = None) -> NDArray[np.float64]:
        """The scores of one detector, of all images or of those with this role and in this set."""
        if detector not in self.detectors:
            raise UnknownNameError("detector", detector, self.detectors)
        chosen = np.ones(len(self.frame), dtype=bool)
        for column, wanted in (("role", role), ("set", set)):
            if wanted is not None:
                chosen &= (self.frame[column] == wanted).to_numpy()
        return self.frame[detector].to_numpy()[chosen]

    def correct(self) -> NDArray[np.bool_]:
        """Which images the classifier gets right; OOD images carry no label, so none of them."""
        label = self.frame["label"].to_numpy()
        return np.asarray((label >= 0) & (label == self.frame["prediction"].to_numpy()))

    def classified(self, name: str) -> bool:
        """Whether labels and predictions of a set are known; sets that came as plain scores may lack them."""
        rows = self.frame[(self.frame["set"] == name).to_numpy()]
        return bool((rows["label"] >= 0).any() and (rows["prediction"] >= 0).any())

    def save(self, path: Path | str) -> None:
        """Write one Parquet file, scores exact to the last bit, the context inside."""
        scorefile.write(Path(path), self.frame, self.context.plain())

    @classmethod
    def load(cls, path: Path | str) -> "ScoreTable":
        """Read what ``save`` wrote, and check it as strictly as a new table."""
        frame, context = scorefile.read(Path(path))
        try:
            return cls(frame, context)
        except OodscopeError as error:
            raise DataError(f"{path}: {error}") from error


def _check_columns(columns: list[Any], described: list[str]) -> None:
    if missing := [name for name in COLUMNS if name not in columns]:
        raise DataError(f"the score table has no column {', '.join(map(repr, missing))}")
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"the score table has two columns {twice!r}")
    if clash := [name for name in described if name in COLUMNS]:
        raise DataError(f"a detector cannot be called {clash[0]!r}: that is a column of every table")
    for name in set(columns) - {*COLUMNS, *described}:
        raise DataError(f"column {name!r} is not described in the detectors of the context")
    for name in set(described) - set(columns):
        raise DataError(f"the context describes detector {name!r}, but the score table has no such column")


def _typed(frame: "pd.DataFrame", detectors: Iterable[str]) -> "pd.DataFrame":
    """A copy with the types of the table; the few distinct names become categories to stay small."""
    import pandas as pd  # late: nobody should wait for it who only imports this

    # rows are identified by position; an index of the caller's own would put names beside the wrong scores
    frame = frame.reset_index(drop=True)
    typed: dict[str, Any] = {}
    for name in TEXT:
        if frame[name].isna().any():
            row = int(frame[name].isna().to_numpy().argmax())
            raise DataError(f"column {name!r} has an empty entry in row {row}")
        typed[name] = frame[name].astype(str)
        if name != "sample_id":
            typed[name] = pd.Categorical(typed[name], categories=typed[name].unique())
    for name in NUMBERS:
        if not pd.api.types.is_integer_dtype(frame[name].dtype):
            raise DataError(f"column {name!r} must hold integers, not {frame[name].dtype}")
        typed[name] = frame[name].to_numpy(dtype=np.int64)
    for name in detectors:
        if not pd.api.types.is_float_dtype(frame[name].dtype):
            raise DataError(f"the scores of {name!r} must be floating-point numbers, not {frame[name].dtype}")
        typed[name] = frame[name].to_numpy(dtype=np.float64, copy=True)
    ordered = {name: typed[name] for name in (*COLUMNS, *detectors)}
    return pd.DataFrame(ordered, index=range(len(frame)))


def _check_rows(frame: "pd.DataFrame") -> None:
    if unknown := [role for role in frame["role"].cat.categories if role not in ROLES]:
        raise UnknownNameError("role", unknown[0], ROLES)
    repeated = frame.duplicated(["set", "unit", "sample_id"]).to_numpy()
    if repeated.any():
        row = frame.iloc[int(repeated.argmax())]
        unit = f", unit {row['unit']!r}" if row["unit"] else ""
        raise DataError(f"sample {row['sample_id']!r} occurs twice in set {row['set']!r}{unit}")


def _check_finite(frame: "pd.DataFrame", detector: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(frame[detector].to_numpy()))
    if len(wrong):
        names = ", ".join(f"{frame['set'].iloc[row]}:{frame['sample_id'].iloc[row]}" for row in wrong[:3])
        raise DataError(
            f"{detector}: {len(wrong)} of {len(frame)} scores are NaN or infinite; the first rows are "
            f"{', '.join(map(str, wrong[:3]))} ({names})"
        )
