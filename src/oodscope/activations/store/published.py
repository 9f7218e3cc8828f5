"""Published activations: what a network said about every image of a benchmark, as files that anybody can check.

A folder holds ``manifest.json``, for every set its columns (``logits``, ``features``, ``prediction``) in safetensors
files of some rows each and its images (names, labels, own classes) as one Parquet file, and the head. The manifest
names every file with its SHA-256. Nothing in it is executed, and nothing is read that the manifest does not name.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, StringConstraints
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from oodscope.activations.activations import Activations
from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import ActivationError, StorageError
from oodscope.base.files import atomic_path, file_sha256, write_text
from oodscope.models.classifier.head import Head
from oodscope.results import scorefile

MANIFEST = "manifest.json"
ROWS = 65_536
"""Images per file."""

_LIST = "image list"
FileName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*\.(safetensors|parquet)$")]


class PublishedFile(StrictModel):
    """One file, by its name inside the folder, and its checksum."""

    file: FileName
    sha256: str


class PublishedSet(StrictModel):
    """One set: its role, its images, and its columns in consecutive parts."""

    role: str
    n: int = Field(gt=0)
    images: PublishedFile
    parts: tuple[PublishedFile, ...]


class Manifest(StrictModel):
    """What the folder holds, of which network and benchmark."""

    format: Literal[1] = 1
    benchmark: str
    benchmark_version: str
    model: str
    weights_hash: str
    precision: str
    sets: dict[str, PublishedSet]
    head: PublishedFile | None = None


class PublishedActivations:
    """A folder of published activations, opened; every file is checked before it is read."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        try:
            self._text = path.read_text(encoding="utf-8")
            content = json.loads(self._text)
        except (OSError, ValueError) as error:
            raise ActivationError(f"{path}: no readable manifest of published activations ({error})") from error
        self.manifest = parse(Manifest, content, str(path))

    @property
    def checksum(self) -> str:
        """Of the manifest, and so of everything."""
        return sha256(self._text.encode()).hexdigest()

    def sets(self, role: str) -> list[str]:
        """The sets with this role."""
        return [name for name, each in self.manifest.sets.items() if each.role == role]

    def images(self, name: str) -> pd.DataFrame:
        """Names, labels and own classes of a set's images, in order."""
        frame, _ = scorefile.read(self._checked(self.manifest.sets[name].images), _LIST)
        return frame

    def activations(self, name: str) -> Activations:
        """The columns of a set, with labels and head."""
        entry = self.manifest.sets[name]
        parts = [self._load(part) for part in entry.parts]
        columns: dict[str, Any] = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        if any(len(values) != entry.n for values in columns.values()):
            raise ActivationError(f"{self.folder}: set {name!r} should hold {entry.n} rows")
        labels = self.images(name)["label"].to_numpy(dtype=np.int64)
        return Activations(**columns, labels=labels, head=self.head())

    def head(self) -> Head | None:
        """The last layer, where the network has one."""
        if self.manifest.head is None:
            return None
        import torch

        read = self._load(self.manifest.head)
        return Head(torch.from_numpy(read["weight"]), torch.from_numpy(read["bias"]))

    def _load(self, entry: PublishedFile) -> dict[str, Any]:
        path = self._checked(entry)
        try:
            read: dict[str, Any] = load_file(path)
        except (SafetensorError, OSError) as error:
            raise ActivationError(f"{path}: not a readable safetensors file ({error})") from error
        return read

    def _checked(self, entry: PublishedFile) -> Path:
        path = self.folder / entry.file
        if path.is_symlink() or not path.is_file():
            raise ActivationError(f"{path}: no such plain file")
        if file_sha256(path) != entry.sha256:
            raise ActivationError(f"{path}: not the file that was published (checksum differs)")
        return path


def write_published(
    folder: Path | str,
    sets: Iterator[tuple[str, str, pd.DataFrame, Activations]],
    head: Head | None,
    about: Mapping[str, str],
) -> Path:
    """Write the activations of some sets; the manifest comes last, so that a part never passes for the whole.

    Parameters
    ----------
    sets : name, role, images (``sample_id``, ``label``, ``own_class``) and activations of each.
    about : the other fields of the manifest.
    """
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        raise StorageError(f"{folder} holds published activations, which never change; choose another folder")
    written: dict[str, Any] = {}
    for number, (name, role, images, activations) in enumerate(sets):
        stem = f"set-{number:03d}"
        scorefile.write(folder / f"{stem}-images.parquet", images, {}, _LIST)
        parts = []
        for start in range(0, len(activations), ROWS):
            rows = np.arange(start, min(start + ROWS, len(activations)))
            parts.append(_write(folder, f"{stem}-{start // ROWS:05d}.safetensors", _columns(activations, rows)))
        written[name] = {
            "role": role,
            "n": len(activations),
            "images": _told(folder, f"{stem}-images.parquet"),
            "parts": parts,
        }
    content: dict[str, Any] = {**about, "sets": written}
    if head is not None:
        arrays = {"weight": head.weight.cpu().numpy(), "bias": head.bias.cpu().numpy()}
        content["head"] = _write(folder, "head.safetensors", arrays)
    manifest = parse(Manifest, content, str(folder))
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    return folder


def _columns(activations: Activations, rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    piece = activations.take(rows)
    names = [name for name in ("logits", "features", "prediction") if name in piece]
    return {name: np.ascontiguousarray(piece[name].cpu().numpy()) for name in names}


def _write(folder: Path, name: str, arrays: dict[str, Any]) -> dict[str, str]:
    with atomic_path(folder / name) as temporary:
        save_file(arrays, temporary)
    return _told(folder, name)


def _told(folder: Path, name: str) -> dict[str, str]:
    return {"file": name, "sha256": file_sha256(folder / name)}
