"""Activations: what a network said about some images, as columns of equal length."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from oodscope.activations.columns import CHUNK_NUMBERS, ColumnLike, ReducedColumn, Selected
from oodscope.activations.moments import PUBLISHED, REDUCED, Moments, gather_moments, join_moments, unpack_moments
from oodscope.base.errors import ActivationError, did_you_mean
from oodscope.base.hashing import fingerprint
from oodscope.models.classifier.head import Head

Column = Tensor | np.ndarray[Any, np.dtype[Any]] | ColumnLike


class Activations(Mapping[str, Tensor]):
    """Optional columns of equal length, from a network or from plain arrays.

    A column may be a memory map larger than memory: ``chunks`` reads it piece by piece, and ``moments``
    reduces it in one pass that all detectors share.

    Parameters
    ----------
    logits : ``[N, C]``.
    features : ``[N, D]``, the input of the head; float16 storage is welcome, chunks are float32.
    labels : ``[N]``, the true class or -1.
    prediction : ``[N]``, the predicted class; the arg-max of the logits unless given.
    weight, bias : the head, ``[C, D]`` and ``[C]``; or ``head``, one object with both.
    columns : anything a probe computed, by name.

    Examples
    --------
    >>> acts = oods.ActivationStore(folder).extract(clf, bench.id_test)
    >>> acts.logits.shape, acts.features.shape
    (torch.Size([80, 4]), torch.Size([80, 24]))
    """

    made_on: frozenset[str] = frozenset()
    """Names of the devices that computed these columns, where the store knows them."""

    def __init__(
        self,
        *,
        logits: ArrayLike | Tensor | ColumnLike | None = None,
        features: ArrayLike | Tensor | ColumnLike | None = None,
        labels: ArrayLike | Tensor | None = None,
        prediction: ArrayLike | Tensor | None = None,
        weight: ArrayLike | Tensor | None = None,
        bias: ArrayLike | Tensor | None = None,
        head: Head | None = None,
        columns: Mapping[str, ArrayLike | Tensor | ColumnLike] | None = None,
    ) -> None:
        given = {"logits": logits, "features": features, "labels": labels, "prediction": prediction}
        self._columns = {
            name: _as_column(name, values)
            for name, values in {**given, **(columns or {})}.items()
            if values is not None
        }
        self.head = head if weight is None else _head(weight, bias)
        self._moments: dict[bool, Moments] = {}
        self._mean: Tensor | None = None
        self._found: dict[tuple[str, str], Tensor] = {}
        self._check()

    @classmethod
    def of_batch(cls, columns: Mapping[str, Tensor], head: Head | None) -> "Activations":
        """One batch as it lies on its device, gradients included; nothing is checked."""
        batch = cls.__new__(cls)
        batch._columns, batch.head = dict(columns), head
        batch._moments, batch._found, batch._mean = {}, {}, None
        return batch

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[str]:
        yield from self._columns
        if "logits" in self._columns and "prediction" not in self._columns:
            yield "prediction"

    def __contains__(self, name: object) -> bool:
        return name in self._columns or (name == "prediction" and "logits" in self._columns)

    def __getitem__(self, name: str) -> Tensor:
        if name in self._columns:
            return _as_tensor(self._columns[name])
        if name == "prediction" and "logits" in self._columns:
            return self.per_row(
                lambda chunk: chunk.logits.argmax(dim=1), device=self._device_of("logits"), only=("logits",)
            )
        raise ActivationError(
            f"no column {name!r}.{did_you_mean(name, self._columns)} These activations hold: {', '.join(self._columns)}"
        )

    @property
    def logits(self) -> Tensor:
        return self["logits"]

    @property
    def features(self) -> Tensor:
        return self["features"]

    @property
    def labels(self) -> Tensor:
        return self["labels"]

    @property
    def prediction(self) -> Tensor:
        return self["prediction"]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(values.shape)}" for name, values in self._columns.items())
        return f"Activations({len(self)} rows: {shapes}{', head' if self.head else ''})"

    def chunks(
        self,
        rows: int | None = None,
        device: torch.device | str = "cpu",
        only: tuple[str, ...] | None = None,
        within: range | None = None,
    ) -> Iterator["Activations"]:
        """Consecutive pieces in memory on ``device``, floats as float32; ``only`` these columns if given.

        Pieces have as many ``rows`` as bounded memory allows, unless given otherwise; they lie ``within`` a range of
        rows, by default all.
        """
        columns = {name: self._columns[name] for name in only or self._columns if name in self._columns}
        widest = max(math.prod(values.shape[1:]) for values in columns.values())
        rows = rows or max(1, CHUNK_NUMBERS // widest)
        head = None if self.head is None else self.head.to(device)
        within = range(len(self)) if within is None else within
        for start in within[::rows]:
            chosen = slice(start, min(start + rows, within.stop))
            piece = {name: _as_tensor(values[chosen], device=device) for name, values in columns.items()}
            yield Activations.of_batch(piece, head)

    def per_row(
        self,
        function: Callable[["Activations"], Tensor],
        *,
        device: torch.device | str = "cpu",
        only: tuple[str, ...] | None = None,
    ) -> Tensor:
        """What ``function`` says of each row, asked chunk by chunk.

        The answers go into one block: small pieces kept between large temporary ones would fragment the heap.
        """
        answers, start = torch.empty(0), 0
        for chunk in self.chunks(device=device, only=only):
            part = function(chunk)
            if start == 0:
                answers = part.new_empty((len(self), *part.shape[1:]))
            answers[start : start + len(chunk)] = part
            start += len(chunk)
        return answers

    def embedded(self) -> "Activations":
        """The same rows with the network's output as features: of a network that ends in an embedding."""
        columns = {"features" if name == "logits" else name: values for name, values in self._columns.items()}
        return self._with(columns)

    def with_columns(self, columns: Mapping[str, Tensor]) -> "Activations":
        """The same rows with more columns."""
        wider = self._with({**self._columns, **columns})
        wider.made_on = self.made_on
        return wider

    def as_features(self, column: str, entries: int | Tensor) -> "Activations":
        """The same rows with some entries of a column as their features, and nothing else but labels.

        Parameters
        ----------
        entries : a stage of ``[N, stages, width]``, or the columns that are kept of ``[N, width]``.
        """
        values = self._columns[column]
        if isinstance(values, Tensor):
            chosen: Column = values[:, entries if isinstance(entries, int) else entries.to(values.device)]
        else:
            chosen = Selected(values, entries if isinstance(entries, int) else entries.cpu().numpy())
        narrow = Activations.of_batch({}, None)
        narrow._columns = {"features": chosen}
        if "labels" in self._columns:
            narrow._columns["labels"] = self._columns["labels"]
        return narrow

    def take(self, rows: ArrayLike) -> "Activations":
        """These rows, in this order, in memory."""
        chosen = np.asarray(rows, dtype=np.int64)
        picked = {
            name: values[torch.from_numpy(chosen)] if isinstance(values, Tensor) else np.asarray(values[chosen])
            for name, values in self._columns.items()
        }
        return self._with(picked)

    def moments(self, device: torch.device | str = "cpu", *, normalised: bool = False) -> Moments:
        """Counts, means and scatter of the features by label, from one pass, kept for the next caller.

        Shard by shard, added in the order of the shards: the digits depend on nobody's order.
        ``normalised``: of the features divided by their lengths; a zero row stays zero.
        """
        if normalised not in self._moments:
            self._moments[normalised] = self._published_moments(device, normalised)
        return self._moments[normalised]

    def _published_moments(self, device: torch.device | str, normalised: bool) -> Moments:
        """Those that a process before this one published beside the set, if they cost enough for that."""
        features, classes, width = self._columns["features"], self.num_classes, self.shape("features")[1]

        def gathered() -> Moments:
            parts = (self.moments_within(shard, device, normalised=normalised) for shard in self.shards())
            return join_moments(list(parts))

        worth = len(self) * width**2 >= PUBLISHED and torch.device(device).type == "cpu"
        if not worth or not isinstance(features, ReducedColumn):
            return gathered()
        labels = self.labels.cpu().numpy() if "labels" in self._columns else None
        what = fingerprint("moments", labels, classes, normalised, REDUCED)
        return unpack_moments(features.reduced(what, lambda: gathered().packed()), classes, width)

    def moments_within(self, rows: range, device: torch.device | str = "cpu", *, normalised: bool = False) -> Moments:
        """The moments of some rows alone, such as those of one of the ``shards``."""
        chunks = self.chunks(device=device, only=("features", "labels"), within=rows)
        pairs = ((chunk.features, chunk["labels"] if "labels" in chunk else None) for chunk in chunks)
        return gather_moments(pairs, self.num_classes, normalised=normalised)

    def shards(self) -> list[range]:
        """The rows that are reduced by themselves, in the order in which they are added."""
        return [range(start, min(start + REDUCED, len(self))) for start in range(0, len(self), REDUCED)]

    def mean_feature(self, device: torch.device | str = "cpu") -> Tensor:
        """The mean of the features in float64 on the CPU, at a fraction of the cost of ``moments``."""
        if self._mean is None:
            # one way, whether or not somebody asked for moments before, shard by shard
            total = torch.zeros((), dtype=torch.float64)
            for shard in self.shards():
                part = torch.zeros((), dtype=torch.float64)
                for chunk in self.chunks(device=device, only=("features",), within=shard):
                    features = chunk.features.cpu() if chunk.features.device.type == "mps" else chunk.features
                    part = part + features.double().sum(dim=0).cpu()
                total = total + part
            self._mean = total / len(self)
        return self._mean

    def broken_rows(self, name: str) -> Tensor:
        """The rows of a column that hold NaN or infinity, from one pass that all detectors share."""
        # a sum that is finite had finite terms; only where it is not are rows worth looking at
        return self._rows_with(
            "broken", name, lambda values: not torch.isfinite(values.sum()), lambda values: ~torch.isfinite(values)
        )

    def negative_rows(self, name: str) -> Tensor:
        """The rows of a column that hold a value below zero, from one pass that all detectors share."""
        return self._rows_with("negative", name, lambda values: bool(values.amin() < 0), lambda values: values < 0)

    def _rows_with(
        self, what: str, name: str, suspect: Callable[[Tensor], bool], test: Callable[[Tensor], Tensor]
    ) -> Tensor:
        if (what, name) not in self._found:
            rows, start = [], 0
            for chunk in self.chunks(device=self._device_of(name), only=(name,)):
                if suspect(chunk[name]):
                    rows.append(test(chunk[name]).flatten(1).any(dim=1).nonzero().flatten().cpu() + start)
                start += len(chunk)
            self._found[what, name] = torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64)
        return self._found[what, name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a column, without reading it."""
        return tuple(self._columns[name].shape)

    def _device_of(self, name: str) -> torch.device | str:
        values = self._columns[name]
        return values.device if isinstance(values, Tensor) else "cpu"

    @property
    def num_classes(self) -> int:
        """How many classes the network knows: from the logits, the head, or the largest label; 0 if nothing tells."""
        if "logits" in self._columns:
            return int(self._columns["logits"].shape[1])
        if self.head is not None:
            return self.head.num_classes
        return int(self.labels.max()) + 1 if "labels" in self._columns else 0

    def _with(self, columns: Mapping[str, Column]) -> "Activations":
        piece = Activations.of_batch({}, self.head)
        piece._columns = dict(columns)
        return piece

    def _check(self) -> None:
        if not self._columns:
            raise ActivationError("activations need at least one column, such as logits")
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ActivationError(f"columns differ in length: {', '.join(f'{n} {k}' for n, k in lengths.items())}")
        if len(self) == 0:
            raise ActivationError("activations are empty: no rows")
        for name in ("logits", "features"):
            if name in self._columns and self._columns[name].ndim != 2:
                raise ActivationError(f"{name} must be a matrix, not of shape {list(self._columns[name].shape)}")
            if name in self._columns and not self._columns[name].shape[1]:
                raise ActivationError(f"{name} have no columns")
        if self.head is None:
            return
        for name, width in (("logits", self.head.num_classes), ("features", self.head.dim)):
            if name in self._columns and self._columns[name].shape[1] != width:
                raise ActivationError(
                    f"{name} have {self._columns[name].shape[1]} columns, the head's weight is "
                    f"[{self.head.num_classes}, {self.head.dim}]"
                )


def _as_column(name: str, values: ArrayLike | Tensor | ColumnLike) -> Column:
    if isinstance(values, Tensor):
        return values.detach()
    if hasattr(values, "shape") and hasattr(values, "dtype") and not isinstance(values, np.ndarray):
        # read piece by piece, where it lies
        return cast(ColumnLike, values)
    array = np.asanyarray(values)
    if array.dtype.kind not in "fiub":
        raise ActivationError(f"{name} must be numbers, not {array.dtype}")
    # whole numbers, as a quantised network returns them; detectors divide and exponentiate
    return array.astype(np.float32) if name in ("logits", "features") and array.dtype.kind in "iu" else array


def _as_tensor(values: Column, device: torch.device | str | None = None) -> Tensor:
    """A tensor over a column; moved and cast to float32 only where a ``device`` is named."""
    if isinstance(values, Tensor):
        tensor = values
    else:
        with warnings.catch_warnings():
            # a read-only memory map makes torch warn; nobody writes to it
            warnings.simplefilter("ignore", UserWarning)
            tensor = torch.from_numpy(np.ascontiguousarray(values))
    if device is None:
        return tensor
    return tensor.to(device, torch.float32 if tensor.is_floating_point() else torch.int64)


def _head(weight: ArrayLike | Tensor, bias: ArrayLike | Tensor | None) -> Head:
    matrix = torch.as_tensor(weight, dtype=torch.float32)
    vector = torch.zeros(len(matrix)) if bias is None else torch.as_tensor(bias, dtype=torch.float32)
    return Head(matrix, vector)
