"""Journal: what is finished of a cross-validation, its metrics and its scores, two files per draw and ID set."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from oodscope.base.errors import StorageError
from oodscope.base.files import checksum, file_sha256, write_text
from oodscope.base.hashing import canonical_json, fingerprint
from oodscope.results import scorefile
from oodscope.runs.crossval.scores import FOLDER, KIND

Cells = list[dict[str, Any]]
"""What one unit of work found, as JSON."""


class Journal:
    """Finished work in a folder; whatever is recorded is whole, and belongs to one plan.

    ``plan.json`` holds everything that decides the numbers. A folder with another plan is refused, because its rows
    would be mixed with ours. A record that is torn or rotten, or whose scores are, counts as not there, and its work
    is done again.

    Parameters
    ----------
    folder : made if it is not there.
    identity : everything that decides the numbers, as JSON.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder, self.scores = folder / "cells", folder / FOLDER
        self.key = fingerprint(identity)
        path = folder / "plan.json"
        plain = json.loads(canonical_json(identity))
        if path.exists():
            self._compare(path, plain)
        else:
            write_text(path, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")

    def write(self, name: str, cells: Cells, scores: pd.DataFrame) -> None:
        """Record a finished unit of work; its scores come first, so that a record never stands without them."""
        path = self._scores_path(name)
        scorefile.write(path, scores, {}, KIND)
        content = canonical_json({"plan": self.key, "cells": cells, "scores": file_sha256(path)})
        write_text(self._path(name), f"{checksum(content.encode()):08x} {content}\n")

    def read(self, name: str) -> Cells | None:
        """What a unit of work found; ``None`` if it is not finished."""
        try:
            stamp, _, content = self._path(name).read_text(encoding="utf-8").rstrip("\n").partition(" ")
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        if stamp != f"{checksum(content.encode()):08x}":
            return None
        try:
            record = json.loads(content)
            cells: Cells = record["cells"]
            theirs, scores = record["plan"], record["scores"]
        except (ValueError, TypeError, KeyError, RecursionError):  # a checksum that fits, of something else
            return None
        path = self._scores_path(name)
        return cells if theirs == self.key and path.is_file() and file_sha256(path) == scores else None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _scores_path(self, name: str) -> Path:
        return self.scores / f"{name}.parquet"

    def _compare(self, path: Path, ours: dict[str, Any]) -> None:
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            differing = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"{path}: not the plan of a cross-validation; choose another folder") from error
        if differing:
            key = differing[0]
            raise StorageError(
                f"{path.parent} holds another cross-validation: {key} was {_short(theirs.get(key))} and is now "
                f"{_short(ours.get(key))}; choose another folder"
            )


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
