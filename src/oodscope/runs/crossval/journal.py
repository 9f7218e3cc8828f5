"""Journal: what is finished of a cross-validation, one small file per draw and ID set."""

import json
from pathlib import Path
from typing import Any

from oodscope.base.errors import StorageError
from oodscope.base.files import checksum, write_text
from oodscope.base.hashing import canonical_json, fingerprint

Cells = list[dict[str, Any]]
"""What one unit of work found, as JSON."""


class Journal:
    """Finished work in a folder; whatever is recorded is whole, and belongs to one plan.

    ``plan.json`` holds everything that decides the numbers. A folder with another plan is refused, because its rows
    would be mixed with ours. A record that is torn or rotten counts as not there, and its work is done again.

    Parameters
    ----------
    folder : made if it is not there.
    identity : everything that decides the numbers, as JSON.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder / "cells"
        self.key = fingerprint(identity)
        path = folder / "plan.json"
        plain = json.loads(canonical_json(identity))
        if path.exists():
            self._compare(path, plain)
        else:
            write_text(path, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")

    def write(self, name: str, cells: Cells) -> None:
        """Record a finished unit of work."""
        content = canonical_json({"plan": self.key, "cells": cells})
        write_text(self._path(name), f"{checksum(content.encode()):08x} {content}\n")

    def read(self, name: str) -> Cells | None:
        """What a unit of work found; ``None`` if it is not finished."""
        try:
            stamp, _, content = self._path(name).read_text(encoding="utf-8").rstrip("\n").partition(" ")
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        if stamp != f"{checksum(content.encode()):08x}":
            return None
        record = json.loads(content)
        cells: Cells = record["cells"]
        return cells if record["plan"] == self.key else None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _compare(self, path: Path, ours: dict[str, Any]) -> None:
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            differing = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        except (ValueError, TypeError, AttributeError) as error:
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
