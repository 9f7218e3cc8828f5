"""ArraySet: the arrays of one set as people have them, read and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DataError, OodscopeError, did_you_mean
from oodscope.base.hashing import fingerprint
from oodscope.models.classifier.head import Head

KEYS = ("logits", "features", "labels", "prediction", "weight", "bias", "sample_id")
"""What the arrays of a set are called."""

PLAIN = ("logits", "features")
_COLUMNS = (*PLAIN, "labels", "prediction")
_WHOLE = ("labels", "prediction")

ArraySource = Activations | Mapping[str, ArrayLike | Tensor] | str | Path
"""A set as people give it: activations, arrays by their names, or the file that holds them."""


@dataclass(frozen=True)
class ArraySet:
    """The arrays of one set.

    Parameters
    ----------
    name : how tables and messages call it.
    activations : its columns, with the head if the set brought one.
    sample_ids : a name for each row.
    given : the columns that were given, of ``logits, features, labels, prediction``.
    """

    name: str
    activations: Activations
    sample_ids: tuple[str, ...]
    given: tuple[str, ...]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of its arrays and of the names of its rows."""
        columns = [key for key in _COLUMNS if key in self.activations]
        arrays = [part for key in columns for part in (key, self.activations[key].cpu().numpy())]
        return fingerprint("arrays", list(self.sample_ids), *arrays)

    def checked(self, role: str, head: Head | None, class_names: Sequence[str]) -> "ArraySet":
        """The same set under the common head, if shapes, labels and numbers fit it and each other."""
        found = self.activations
        for key in PLAIN:
            if key in self.given and len(bad := found.broken_rows(key)):
                shown = ", ".join(map(str, bad[:5].tolist())) + (", ..." if len(bad) > 5 else "")
                raise DataError(
                    f"set {self.name!r}: {key} are NaN or infinite in {len(bad)} of {len(found)} rows ({shown})"
                )
        classes = len(class_names)
        if "logits" in self.given and found.shape("logits")[1] != classes:
            width = found.shape("logits")[1]
            raise DataError(f"set {self.name!r}: logits have {width} columns for {classes} classes")
        # the labels of an OOD set are classes of its own
        ranges = {"prediction": (0, classes), "labels": (-1, None if role in ("near", "far", "ood_val") else classes)}
        for key, (low, high) in ranges.items():
            if key in self.given:
                self._check_range(key, low, high)
        try:
            whole: dict[str, Any] = {key: found[key] for key in self.given}
            return replace(self, activations=Activations(**whole, head=head))
        except OodscopeError as error:
            raise DataError(f"set {self.name!r}: {error}") from error

    def _check_range(self, key: str, low: int, high: int | None) -> None:
        values = self.activations[key].cpu().numpy()
        wrong = np.flatnonzero((values < low) | (values >= high if high is not None else False))
        if len(wrong):
            row, ends = int(wrong[0]), f"{low}..{'' if high is None else high - 1}"
            raise DataError(f"set {self.name!r}: {key} of row {row} is {values[row]}, out of range {ends}")


def read_array_set(name: str, source: ArraySource) -> ArraySet:
    """The arrays of a set from any of the forms in which they are given; what is wrong names the set and the key."""
    arrays = _arrays(name, source)
    for key in arrays:
        if key not in KEYS:
            near = did_you_mean(key, KEYS) or f" Known: {', '.join(KEYS)}"
            raise DataError(f"set {name!r}: unknown key {key!r}.{near}")
    given: dict[str, Any] = {key: _numbers(name, key, values) for key, values in arrays.items() if key != "sample_id"}
    if not any(key in given for key in PLAIN):
        raise DataError(f"set {name!r}: holds neither logits nor features; give at least one of them")
    if "bias" in given and "weight" not in given:
        raise DataError(f"set {name!r}: bias without weight; a head has both, or a weight alone")
    try:
        activations = Activations(**given)
    except OodscopeError as error:
        raise DataError(f"set {name!r}: {error}") from error
    columns = tuple(key for key in _COLUMNS if key in given)
    return ArraySet(name, activations, _sample_ids(name, arrays.get("sample_id"), len(activations)), columns)


def _arrays(name: str, source: ArraySource) -> dict[str, Any]:
    if isinstance(source, Activations):
        arrays: dict[str, Any] = {key: source[key] for key in source if key in _COLUMNS}
        head = source.head
        return arrays | ({} if head is None else {"weight": head.weight, "bias": head.bias})
    if isinstance(source, Mapping):
        return {str(key): values for key, values in source.items() if values is not None}
    if isinstance(source, (str, Path)):
        return _read_file(name, Path(source))
    raise DataError(
        f"set {name!r}: a {type(source).__name__}; give Activations, arrays by key, or an .npz or .safetensors file"
    )


def _read_file(name: str, path: Path) -> dict[str, Any]:
    if path.suffix not in (".npz", ".safetensors"):
        raise DataError(f"set {name!r}: {path}: arrays are read from .npz and .safetensors files")
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except FileNotFoundError as error:
        raise DataError(f"set {name!r}: {path}: no such file") from error
    except (OSError, ValueError, BadZipFile, SafetensorError) as error:
        raise DataError(f"set {name!r}: {path}: not readable ({str(error).splitlines()[0]})") from error


def _numbers(name: str, key: str, values: ArrayLike | Tensor) -> Tensor | NDArray[Any]:
    """An array of the right type and number of dimensions; bfloat16, which NumPy lacks, as float32."""
    if isinstance(values, Tensor):
        array: Any = values.detach()
        array = array.float() if array.dtype == torch.bfloat16 else array
        whole, number = not (array.is_floating_point() or array.is_complex()), not array.is_complex()
    else:
        array = np.asanyarray(values)
        whole, number = array.dtype.kind in "iu", array.dtype.kind in "fiu"
    if not number or (key in _WHOLE and not whole):
        wanted = "integers" if key in _WHOLE else "numbers"
        raise DataError(f"set {name!r}: {key} must be {wanted}, not {array.dtype}")
    dimensions = 1 if key in (*_WHOLE, "bias") else 2
    if array.ndim != dimensions:
        shape = "[N, columns]" if dimensions == 2 else "[N]"
        raise DataError(f"set {name!r}: {key} must be of shape {shape}, not {list(array.shape)}")
    return array  # type: ignore[no-any-return]


def _sample_ids(name: str, given: Any, count: int) -> tuple[str, ...]:
    if given is None:
        return tuple(map(str, range(count)))
    values = given.tolist() if isinstance(given, Tensor | np.ndarray) else list(given)
    ids = tuple(map(str, values))
    if len(ids) != count:
        raise DataError(f"set {name!r}: {len(ids)} sample_id for {count} rows")
    if len(set(ids)) < count:
        twice = next(each for number, each in enumerate(ids) if each in ids[:number])
        raise DataError(f"set {name!r}: sample_id {twice!r} occurs twice")
    return ids
