"""Hugging Face datasets: from the hub, a saved folder, or Parquet files."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.images.decoding import UnreadableImageError
from oodscope.data.images.encoded import EncodedSource
from oodscope.data.images.labels import read_labels
from oodscope.data.imageset import ImageSet


class RowSource(EncodedSource):
    """Encoded images of one column, decoded when they are read.

    Parameters
    ----------
    label : name of the set.
    table : a ``datasets.Dataset``.
    column : its image column.
    """

    def __init__(self, label: str, table: Any, column: str) -> None:
        from datasets import Image

        self.label = label
        self.column = column
        # the library would decode as it likes; asked for bytes, it hands them over
        self.table = table.select_columns([column]).cast_column(column, Image(decode=False))
        self._state = _state(table, column)

    def __len__(self) -> int:
        return len(self.table)

    def encoded(self, index: int) -> Path | BinaryIO:
        cell = self.table[index][self.column]
        if cell and cell.get("bytes"):
            return io.BytesIO(cell["bytes"])
        if cell and cell.get("path"):
            return Path(cell["path"])
        raise UnreadableImageError(f"unreadable image {self.where(index)}: the row holds no image")

    def where(self, index: int) -> str:
        return f"row {index} of set {self.label!r}"

    def name(self, index: int) -> str:
        return f"{self.label}/{index}"

    def keeping(self, rows: Sequence[int]) -> "RowSource":
        return RowSource(self.label, self.table.select(rows), self.column)

    def _digest_all(self) -> list[bytes]:
        kept = None if self._state is None else cache_root() / "rows" / f"{self._state[:32]}.npy"
        if kept is not None:
            try:
                known = np.load(kept, allow_pickle=False)
                if known.shape == (len(self), 16) and known.dtype == np.uint8:
                    return [row.tobytes() for row in known]
            except (OSError, ValueError, EOFError):
                pass  # absent or broken: reading the rows again is the repair
        digests = [self._digest(index) for index in range(len(self))]
        if kept is not None:
            with atomic_path(kept) as temporary, temporary.open("wb") as stream:
                np.save(stream, np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16))
        return digests

    def _digest(self, index: int) -> bytes:
        try:
            file = self.encoded(index)
            content = file.read_bytes() if isinstance(file, Path) else file.read()
        except (UnreadableImageError, OSError):
            content = b""  # whoever decodes it will say what is wrong with it
        return hashlib.blake2b(content, digest_size=16).digest()


def _state(table: Any, column: str) -> str | None:
    """What the digests depend on, without reading the rows; ``None`` if the table lies in memory."""
    files = [Path(entry["filename"]) for entry in table.cache_files]
    if not files:
        return None
    states = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    return fingerprint([table._fingerprint, len(table), column, states])


_USUAL_LABELS = ("label", "labels", "class")


def open_hf(
    name: str,
    dataset: Path | str,
    split: str | None = None,
    *,
    config: str | None = None,
    image: str | None = None,
    label: str | None = None,
) -> ImageSet:
    """A dataset of Hugging Face's ``datasets`` library (``pip install 'oodscope[hf]'``).

    Parameters
    ----------
    name : of the set.
    dataset : a folder written by ``save_to_disk``, a ``.parquet`` file, any other local folder that
        ``load_dataset`` understands, or a name on the hub.
    split : such as ``test``; needed where there are several.
    config : of a dataset on the hub that has several.
    image, label : columns; by default the only image column, and the only column of class labels or the one
        called ``label``. Other columns of class labels become levels of the hierarchy.
    """
    table = _choose_split(name, _load(name, Path(dataset), config), split)
    image = _image_column(name, table.features, image)
    label = _label_column(name, table.features, label)
    labels, names = (None, []) if label is None else _labels(name, table, label)
    levels = {column: _names_of(table, column) for column in _of_kind(table.features, "ClassLabel") if column != label}
    return ImageSet(name, RowSource(name, table, image), labels, names, hierarchy=levels)


def _load(name: str, dataset: Path, config: str | None) -> Any:
    try:
        from datasets import load_dataset, load_from_disk
    except ImportError as error:
        raise DataError(f"set {name!r}: Hugging Face datasets need: pip install 'oodscope[hf]'") from error
    try:
        if dataset.suffix == ".parquet":
            return load_dataset("parquet", data_files=str(dataset))
        if any((dataset / mark).is_file() for mark in ("state.json", "dataset_dict.json")):
            return load_from_disk(str(dataset))
        return load_dataset(str(dataset), config)
    except Exception as error:  # the library's own errors, its HTTP client's and pyarrow's
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"set {name!r}: Hugging Face dataset {dataset}: {reason}") from error


def _choose_split(name: str, loaded: Any, split: str | None) -> Any:
    from datasets import Dataset

    if isinstance(loaded, Dataset):
        if split is not None and str(loaded.split) != split:
            raise DataError(f"set {name!r}: the dataset was saved as one split ({loaded.split}), not {split!r}")
        return loaded
    known = list(loaded)
    if split is None and len(known) == 1:
        split = known[0]
    if split is None:
        raise DataError(f"set {name!r}: the dataset has the splits {', '.join(known)}; say which: split: NAME")
    if split not in known:
        raise UnknownNameError(f"split of set {name!r}", split, known, f"Known: {', '.join(known)}")
    return loaded[split]


def _image_column(name: str, features: Any, wanted: str | None) -> str:
    if wanted is not None:
        return _known(name, features, wanted)
    found = _of_kind(features, "Image")
    if len(found) != 1:
        raise DataError(
            f"set {name!r}: {len(found)} of the columns {', '.join(features)} hold images; say which: image: NAME"
        )
    return found[0]


def _label_column(name: str, features: Any, wanted: str | None) -> str | None:
    if wanted is not None:
        return _known(name, features, wanted)
    coded = _of_kind(features, "ClassLabel")
    usual = [column for column in _USUAL_LABELS if column in (coded or features)]
    if len(coded) > 1 and not usual:
        raise DataError(f"set {name!r}: the columns {', '.join(coded)} hold labels; say which: label: NAME")
    return coded[0] if len(coded) == 1 else next(iter(usual), None)


def _of_kind(features: Any, kind: str) -> list[str]:
    return [column for column, feature in features.items() if type(feature).__name__ == kind]


def _known(name: str, features: Any, column: str) -> str:
    if column not in features:
        raise UnknownNameError(f"column of set {name!r}", column, features, f"Known: {', '.join(features)}")
    return column


def _labels(name: str, table: Any, column: str) -> tuple[list[int], list[str]]:
    feature = table.features[column]
    values = table[column]
    if type(feature).__name__ == "ClassLabel":
        return [-1 if value is None else int(value) for value in values], list(feature.names)
    places = [f"set {name!r}, row {row}" for row in range(len(table))]
    return read_labels(["" if value is None else str(value) for value in values], places)


def _names_of(table: Any, column: str) -> Any:
    names = np.array([*table.features[column].names, ""])
    return names[[-1 if value is None else value for value in table[column]]]
