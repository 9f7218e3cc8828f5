"""Checkpoints of an unfinished training: whole, verified, and one step behind in reserve."""

import io
import logging
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from oodscope.base.files import atomic_path, checksum

CHECKPOINT_SECONDS = 10.0
"""The most work that a kill can lose, unless saving is so slow that this would waste time."""

SAVING_SHARE = 0.05
"""The most time, of all, that goes into checkpoints."""

_LOG = logging.getLogger(__name__)
_CRC_BYTES = 4


class Checkpoints:
    """The checkpoints of one training in a folder, named by its fingerprint.

    A training with another recipe, network or data has another name: neither resumes nor overwrites this
    one. The last checkpoint but one is kept, in case the last is damaged. A checkpoint is a CRC-32 followed
    by what ``torch.save`` writes, because torch itself does not notice a flipped bit.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self.stem = f"checkpoint-{fingerprint[:12]}"
        self.latest = folder / f"{self.stem}.pt"
        self.previous = folder / f"{self.stem}.previous.pt"

    def save(self, state: dict[str, Any]) -> None:
        """Write ``state``, tensors and plain values; a kill at any moment leaves an older one whole."""
        buffer = io.BytesIO()
        torch.save({**state, "fingerprint": self.fingerprint}, buffer)
        with atomic_path(self.latest) as temporary:
            with temporary.open("wb") as stream:
                stream.write(checksum(buffer.getbuffer()).to_bytes(_CRC_BYTES, "little"))
                stream.write(buffer.getbuffer())
            with suppress(FileNotFoundError):
                self.latest.replace(self.previous)

    def load(self) -> dict[str, Any] | None:
        """The newest sound checkpoint, or ``None``, with a note where one had to be passed over."""
        for path in (self.latest, self.previous):
            if path.exists():
                state = _read(path)
                if state is not None and state.get("fingerprint") == self.fingerprint:
                    return state
                _LOG.warning("%s is damaged and was passed over", path)
        others = [path for path in self.folder.glob("checkpoint-*.pt") if not path.name.startswith(self.stem)]
        if others:
            _LOG.warning("%s belongs to a training with other settings; starting anew", others[0])
        return None

    def remove(self) -> None:
        """Delete this training's checkpoints, and what a kill left of an unfinished one."""
        for pattern in (f"{self.stem}*", f".{self.stem}*.tmp"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    """The content, if its checksum agrees and it holds nothing but tensors and plain values."""
    content = memoryview(path.read_bytes())
    expected, payload = int.from_bytes(content[:_CRC_BYTES], "little"), content[_CRC_BYTES:]
    if len(content) < _CRC_BYTES or checksum(payload) != expected:
        return None
    try:
        state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        return None
    return state if isinstance(state, dict) else None
