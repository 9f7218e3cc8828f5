"""Shards: rows of a column as published files, each sealed, verified when its rows are first read."""

import json
import mmap
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors.numpy import save

from oodscope.base.errors import ActivationError, StorageError
from oodscope.base.files import checksum
from oodscope.base.hashing import canonical_json, fingerprint
from oodscope.base.place import Place

Rows = NDArray[np.int64]

CHECKED = 1024
"""Rows under one checksum."""

_MOST_HEADER = 1 << 22
_ANY = 1 << 62
"""More rows than any column has: for who knows a file and not its column."""

_TENSOR, _ABOUT, _SEAL = "values", "oodscope", "seal"


class DamagedError(ActivationError):
    """A published file that does not hold what it says."""


@dataclass(eq=False)
class Shard:
    """One published file: some rows of a column, in ascending order.

    Parameters
    ----------
    path : of the file.
    rows : of the column.
    checks : CRC-32 of every ``CHECKED`` rows.
    values : a read-only memory map; read it through ``ShardedColumn``, which verifies what it hands out.
    about : where it was made: device, versions, seconds.
    """

    path: Path
    rows: Rows
    checks: Sequence[int]
    values: NDArray[Any]
    about: dict[str, Any]

    def __post_init__(self) -> None:
        status = self.path.stat()
        key = (str(self.path), status.st_size, status.st_mtime_ns, status.st_ino)
        self.verified = _VERIFIED.setdefault(key, np.zeros(len(self.checks), dtype=bool))

    def verify(self, start: int, stop: int) -> None:
        """Compare the checksums of what lies between two positions, where nobody has before."""
        for block in range(start // CHECKED, -(-stop // CHECKED)):
            if not self.verified[block]:
                rows = np.ascontiguousarray(self.values[block * CHECKED : (block + 1) * CHECKED])
                if checksum(rows.data.cast("B")) != self.checks[block]:
                    raise DamagedError(f"{self.path}: its rows do not have the checksum that it states")
                self.verified[block] = True


_VERIFIED: dict[tuple[str, int, int, int], NDArray[np.bool_]] = {}
"""What this process has compared, by file as it was."""


def pack(identity: str, name: str, rows: Rows, values: NDArray[Any], about: dict[str, Any]) -> bytes:
    """The bytes of a shard: a safetensors file whose metadata name the column, its rows and checksums, under a seal."""
    values = np.ascontiguousarray(values)
    checks = [checksum(values[start : start + CHECKED].data.cast("B")) for start in range(0, len(values), CHECKED)]
    described = canonical_json(
        {
            "identity": identity,
            "name": name,
            "runs": runs_of(rows),
            "dtype": values.dtype.str,
            "shape": list(values.shape),
            "checks": checks,
            "about": about,
        }
    )
    return bytes(save({_TENSOR: values}, metadata={_ABOUT: described, _SEAL: fingerprint(described)}))


def open_shard(path: Path, identity: str, total: int) -> Shard:
    """A shard of the column called ``identity``, with ``total`` rows; nothing but its head is read."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _MOST_HEADER:
                raise ValueError("its head is too long")
            described = json.loads(stream.read(length))["__metadata__"]
            if fingerprint(described[_ABOUT]) != described[_SEAL]:
                raise ValueError("its head is damaged")
            head = json.loads(described[_ABOUT])
            if (head["identity"], head["name"]) != (identity, path.stem):
                raise ValueError("it belongs elsewhere")
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        rows = np.concatenate([np.arange(start, stop, dtype=np.int64) for start, stop in head["runs"]])
        dtype, shape = np.dtype(head["dtype"]), tuple(head["shape"])
        size = dtype.itemsize * int(np.prod(shape))
        if len(mapped) != 8 + length + size or len(rows) != shape[0] or rows[-1] >= total:
            raise ValueError("it is not as long as it says")
        values = np.frombuffer(mapped, dtype=dtype, count=size // dtype.itemsize, offset=8 + length).reshape(shape)
        return Shard(path, rows, head["checks"], values, head["about"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        raise DamagedError(f"{path}: {error}") from error


def check_shard(path: Path, folder: str) -> None:
    """Refuse a published file that does not belong into its folder, or whose rows are not those that it states.

    Parameters
    ----------
    folder : of its column inside the store, ``ab/cdef.../features``.
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            identity = json.loads(json.loads(stream.read(min(length, _MOST_HEADER)))["__metadata__"][_ABOUT])[
                "identity"
            ]
        home, _, column = str(identity).rpartition("/")
        if folder.split("/")[-3:] != [home[:2], home[2:40], column]:
            raise ValueError("it belongs elsewhere")
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise DamagedError(f"{path}: {error}") from error
    shard = open_shard(path, identity, _ANY)
    shard.verify(0, len(shard.rows))


def column_folder(home: str, column: str) -> str:
    """Where a column lies in a store, by the address of what it is about."""
    return f"{home[:2]}/{home[2:40]}/{column}"


class ShardedColumn:
    """A column in shards, read as an array: ``len``, ``shape``, ``dtype``, slices and rows by number.

    Opening reads heads only. Rows are verified when they are first read; a shard that does not keep its promise is
    removed, so that the next extraction computes it anew, and refused by name.

    Parameters
    ----------
    place : where the store lies.
    folder : of the column inside it.
    identity : what every shard must say that it belongs to.
    rows : of the whole column, those that nobody computed included.
    """

    def __init__(self, place: Place, folder: str, identity: str, rows: int) -> None:
        self.place, self.folder, self.identity, self.rows = place, folder, identity, rows
        self.shards: list[Shard] = []
        self.refused: list[str] = []
        self._owner = np.full(rows, -1, dtype=np.int32)
        self._position = np.zeros(rows, dtype=np.int64)
        self._whole: ref[NDArray[Any]] | None = None
        self._seen: set[str] = set()
        self.refresh()

    def refresh(self) -> None:
        """Open what was published since: a name that was seen keeps its bytes, so that its head is read once."""
        for name in self.place.list(self.folder):
            if name not in self._seen:
                self._seen.add(name)
                self._add(name)

    def _add(self, name: str) -> None:
        try:
            shard = open_shard(self.place.local(name), self.identity, self.rows)
            first = self.shards[0].values if self.shards else shard.values
            if (shard.values.dtype, shard.values.shape[1:]) != (first.dtype, first.shape[1:]):
                raise DamagedError(f"{shard.path}: its rows are unlike those of {self.shards[0].path.name}")
        except DamagedError as error:
            if self.place.remove(name):
                self._seen.discard(name)  # somebody may publish it anew
            else:
                self.refused.append(str(error))
            return
        new = self._owner[shard.rows] < 0
        self._owner[shard.rows[new]] = len(self.shards)
        self._position[shard.rows[new]] = np.flatnonzero(new)
        self.shards.append(shard)

    def publish(self, rows: Rows, values: NDArray[Any], about: dict[str, Any], shard: int) -> None:
        """Publish rows of one shard of the grid: under its number where it is complete, else under their hash."""
        whole = rows[0] % shard == 0 and len(rows) == min(shard, self.rows - int(rows[0])) and len(runs_of(rows)) == 1
        name = f"shard-{rows[0] // shard:05}" if whole else f"part-{fingerprint(rows)[:24]}"
        content = pack(self.identity, name, rows, values, about)
        self.place.create(f"{self.folder}/{name}.safetensors", content)

    def reduced(self, what: str, make: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Numbers that ``make`` computes of all rows: computed once and published beside the shards, then read.

        They lie in a column of one row, named by ``what`` and by the checksums of the rows, so that they are verified
        and healed as any other, and never served for other rows.

        Parameters
        ----------
        what : tells one reduction from others, with everything but the rows that decides its numbers.
        """
        home, _, column = self.identity.rpartition("/")
        rows = sorted([runs_of(shard.rows), list(shard.checks)] for shard in self.shards)
        name = f"{column}.reduced-{fingerprint(what, rows)[:24]}"
        kept = ShardedColumn(self.place, f"{self.folder.rpartition('/')[0]}/{name}", f"{home}/{name}", 1)
        if kept.shards:
            with suppress(DamagedError):  # which removed it
                return np.asarray(kept[0:1][0], dtype=np.float64)
        values = make()
        with suppress(StorageError):  # who may not write to a store still reads it
            kept.publish(np.zeros(1, dtype=np.int64), values[None], {}, 1)
        return values

    def missing(self, wanted: Rows) -> Rows:
        """Those of the wanted rows that are not there yet."""
        return wanted[self._owner[wanted] < 0]

    def verify(self) -> None:
        """Compare all checksums; damaged shards are removed, and the first is raised."""
        damaged = []
        for shard in self.shards:
            try:
                shard.verify(0, len(shard.rows))
            except DamagedError as error:
                damaged.append(self._condemned(shard, error))
        if damaged:
            raise damaged[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, *self.shards[0].values.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.shards[0].values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return sum(shard.values.nbytes for shard in self.shards)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: slice | Rows) -> NDArray[Any]:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.rows))
        owners, positions = self._owner[rows], self._position[rows]
        cuts = np.flatnonzero((np.diff(owners) != 0) | (np.diff(positions) != 1)) + 1
        if len(cuts) == 0 and len(rows):
            return self._span(int(owners[0]), int(positions[0]), len(rows))
        if len(cuts) < len(rows) / 8:
            edges = [0, *cuts.tolist(), len(rows)]
            spans = [self._span(int(owners[a]), int(positions[a]), b - a) for a, b in pairwise(edges)]
            return np.concatenate(spans) if spans else np.empty((0, *self.shape[1:]), self.dtype)
        return self._gathered(owners, positions)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All rows, shared by callers while one of them holds it; where one shard holds all, mapped and not read."""
        whole = None if self._whole is None else self._whole()
        if whole is None:
            whole = self[0 : self.rows]
            self._whole = ref(whole)
        return whole if dtype is None else whole.astype(dtype, copy=bool(copy))

    def _span(self, owner: int, start: int, count: int) -> NDArray[Any]:
        shard = self.shards[owner]
        self._verified(shard, start, start + count)
        return shard.values[start : start + count]

    def _gathered(self, owners: NDArray[np.int32], positions: Rows) -> NDArray[Any]:
        rows = np.empty((len(owners), *self.shape[1:]), self.dtype)
        for owner in np.unique(owners):
            shard, chosen = self.shards[owner], owners == owner
            for block in np.unique(positions[chosen] // CHECKED):
                self._verified(shard, block * CHECKED, min((block + 1) * CHECKED, len(shard.rows)))
            rows[chosen] = shard.values[positions[chosen]]
        return rows

    def _verified(self, shard: Shard, start: int, stop: int) -> None:
        try:
            shard.verify(start, stop)
        except DamagedError as error:
            raise self._condemned(shard, error) from error

    def _condemned(self, shard: Shard, error: DamagedError) -> DamagedError:
        gone = self.place.remove(f"{self.folder}/{shard.path.name}")
        return DamagedError(f"{error}; " + ("it was removed, run again" if gone else "delete it and run again"))


def runs_of(rows: Rows) -> list[list[int]]:
    """Ascending rows as half-open runs: ``[3, 4, 5, 9]`` is ``[[3, 6], [9, 10]]``."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [[int(run[0]), int(run[-1]) + 1] for run in np.split(rows, breaks)]
