"""BlockFolder: the finished blocks of one search on disk."""

import json
import logging
from pathlib import Path
from typing import Any

from oodscope.base.errors import StorageError
from oodscope.base.files import write_text
from oodscope.generation.found import Found

_LOG = logging.getLogger(__name__)


class BlockFolder:
    """A folder that belongs to one search, whose description is ``search.json``.

    Each block is one file, written whole, so a killed search goes on after its last block, and several processes may
    fill one folder with different blocks.
    """

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder
        self.description = description
        path = folder / "search.json"
        if path.exists():
            self._compare(path)
        else:
            write_text(path, json.dumps(self.description, indent=2, sort_keys=True) + "\n")

    def read(self, number: int) -> Found | None:
        """A finished block; None if there is none, or none that is sound."""
        path = self._path(number)
        if not path.exists():
            return None
        try:
            found = Found.load(path)
        except StorageError:
            _LOG.warning("%s is damaged and is searched again", path)
            return None
        return found if found.description == self.description else None

    def write(self, number: int, found: Found) -> None:
        """Keep a block."""
        found.save(self._path(number))

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:05d}.safetensors"

    def _compare(self, path: Path) -> None:
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            differs = sorted(
                key for key in {*theirs, *self.description} if theirs.get(key) != self.description.get(key)
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise StorageError(f"{path}: not the description of a search; choose another folder") from error
        if differs:
            raise StorageError(
                f"{self.folder} holds another search: {', '.join(differs)} differ. Delete it or choose another folder"
            )
