"""SealedFile: tensors and a JSON record in one safetensors file, with a checksum over both; never a pickle."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from oodscope.base.boundedjson import bounded_json
from oodscope.base.errors import StorageError
from oodscope.base.files import atomic_path
from oodscope.base.hashing import fingerprint


class SealedFile(NamedTuple):
    """A kind of file, and the words that refuse one that is not of this kind.

    Parameters
    ----------
    key : where the record stands in the file.
    format : the newest version of the record that can be read; the record names its own as ``format``.
    kind : what such a file is called, with its article.
    writer : who writes them.
    advice : what to look for where there is no file; may be empty.
    remedy : what else than a new copy helps where one is damaged.
    """

    key: str
    format: int
    kind: str
    writer: str
    advice: str
    remedy: str

    def write(self, path: Path, text: str, tensors: dict[str, Tensor]) -> None:
        """Write the record, as JSON text, and the tensors, whole or not at all."""
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={self.key: text, "checksum": _checksum(text, tensors)})

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The record and the tensors, on the CPU."""
        if not path.is_file():
            raise StorageError(f"{path}: no such file{self.advice}")
        try:
            with safe_open(path, framework="pt") as content:
                metadata = content.metadata() or {}
                tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
        except (OSError, SafetensorError, ValueError) as error:
            raise StorageError(f"{path}: not {self.kind}: damaged, cut off, or another kind of file") from error
        if self.key not in metadata:
            raise StorageError(f"{path}: a safetensors file, but not one that {self.writer} wrote")
        text = metadata[self.key]
        declared = bounded_json(text, f"{path}: its record")
        if isinstance(declared.get("format"), int) and declared["format"] > self.format:
            raise StorageError(
                f"{path}: written by a newer oodscope (format {declared['format']}, this one reads {self.format})"
            )
        if metadata.get("checksum") != _checksum(text, tensors):
            raise StorageError(
                f"{path}: damaged: its content does not match its checksum; copy it anew or {self.remedy}"
            )
        return declared, tensors


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """Of everything in the file: safetensors itself notices a missing end, but not a changed byte."""
    flat = {key: value.reshape(-1).view(torch.uint8).numpy() for key, value in tensors.items()}
    return fingerprint(text, sorted(tensors), *(np.ascontiguousarray(flat[key]) for key in sorted(flat)))
