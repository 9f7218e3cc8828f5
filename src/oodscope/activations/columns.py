"""Columns that are read piece by piece from wherever they lie."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from oodscope.models.classifier.head import Head

CHUNK_NUMBERS = 2**20
"""Numbers in the widest column of a chunk: 8 MiB in float64, large enough for fast products."""


class ColumnLike(Protocol):
    """A column that is read piece by piece from wherever it lies."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: Any) -> Any: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...


@runtime_checkable
class ReducedColumn(ColumnLike, Protocol):
    """A whole column that keeps what was computed of all its rows, for the next process too."""

    def reduced(self, what: str, make: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]: ...


class HeadLogits:
    """The logits of stored features, computed from the proved head when they are read, in float32.

    Parameters
    ----------
    features : ``[N, D]``.
    head : whose logits they are.
    """

    def __init__(self, features: ColumnLike, head: Head) -> None:
        self.features, self.head = features, head
        self.shape, self.ndim, self.dtype = (len(features), head.num_classes), 2, np.dtype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray[Any, np.dtype[Any]]:
        features = torch.from_numpy(np.asarray(self.features[rows], dtype=np.float32).copy())
        return self.head.logits(features).numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        step = max(1, CHUNK_NUMBERS // max(self.shape[1], self.features.shape[1]))
        whole = np.concatenate([self[start : start + step] for start in range(0, len(self), step)])
        return whole if dtype is None else whole.astype(dtype)


class Selected:
    """Some of the entries that a column has for each row, read piece by piece.

    Parameters
    ----------
    values : ``[N, ...]``, wherever it lies.
    entries : an index into the second dimension: a number, or an array of them.
    """

    def __init__(
        self, values: "ColumnLike | np.ndarray[Any, np.dtype[Any]]", entries: int | np.ndarray[Any, np.dtype[np.int64]]
    ) -> None:
        self.values, self.entries = values, entries
        rest = () if isinstance(entries, int) else (len(entries),)
        self.shape: tuple[int, ...] = (len(values), *rest, *values.shape[2:])
        self.ndim, self.dtype = len(self.shape), values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray[Any, np.dtype[Any]]:
        part: np.ndarray[Any, np.dtype[Any]] = np.asarray(self.values[rows])[:, self.entries]
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        whole = self[slice(None)]
        return whole if dtype is None else whole.astype(dtype)
