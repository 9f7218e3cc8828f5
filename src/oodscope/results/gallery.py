"""Gallery: small pictures of the hardest images of a run and of examples, kept beside its numbers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path
from oodscope.results.scoretable import ScoreTable

COUNT = 8
"""Images of a set that are shown for a detector."""

OOD_ROLES, ID_ROLES = ("near", "far"), ("id_test", "csid")


def shown_sets(scores: ScoreTable) -> list[tuple[str, str]]:
    """Role and name of every set with a right and a wrong side: near and far ones first, then ``id_test`` and csid."""
    return [(role, name) for role in (*OOD_ROLES, *ID_ROLES) for name in scores.sets(role)]


def hardest(scores: ScoreTable, detector: str, role: str, name: str, count: int = COUNT) -> NDArray[np.int64]:
    """Rows of the table, the worst first: of an OOD set the lowest scores, of a known one the highest.

    Of equal scores the earlier row counts as worse, so that the answer is the same every time.
    """
    rows = rows_of(scores, role, name)
    return np.asarray(rows[worst(scores.scores(detector)[rows], role, count)], dtype=np.int64)


def rows_of(scores: ScoreTable, role: str, name: str) -> NDArray[np.int64]:
    """Rows of the table that a set fills in a role."""
    frame = scores.frame
    return np.flatnonzero(((frame["set"] == name) & (frame["role"] == role)).to_numpy())


def worst(scores: NDArray[np.float64], role: str, count: int = COUNT) -> NDArray[np.int64]:
    """Places of the worst among the scores of a set, as ``hardest`` orders them."""
    values = scores if role in OOD_ROLES else -scores
    few = np.arange(len(values))
    if 0 < count < len(values):
        # those that may be among them: a large set need not be sorted for a few
        few = np.flatnonzero(~(values > np.partition(values, count - 1)[count - 1]))
    return np.asarray(few[np.argsort(values[few], kind="stable")[:count]], dtype=np.int64)


EXAMPLES = 6
"""Images of a set that show what it is."""


def examples(scores: ScoreTable, role: str, name: str, count: int = EXAMPLES) -> NDArray[np.int64]:
    """Rows of the table, evenly spread over a set: what it looks like, whatever detectors make of it."""
    rows = rows_of(scores, role, name)
    places = np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(np.int64)
    return np.asarray(rows[places], dtype=np.int64)


SIDE = 64
"""The largest side of a picture in pixels."""

_ABOUT = "gallery"


@dataclass(frozen=True, eq=False)
class Gallery:
    """Pictures by set and sample; which detector gets which of them wrong is a question to the score table.

    Parameters
    ----------
    keys : (set, sample id) of each picture, as in the score table.
    pictures : uint8 ``[H, W, 3]``, no side longer than 64 pixels.
    class_names : the classes that predictions of the score table count.
    """

    keys: tuple[tuple[str, str], ...]
    pictures: tuple[NDArray[np.uint8], ...]
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.pictures) or len(set(self.keys)) < len(self.keys):
            raise DataError("a gallery needs one picture for each sample, and each sample once")
        for key, picture in zip(self.keys, self.pictures):
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or max(picture.shape) > SIDE:
                raise DataError(
                    f"the picture of {key[1]!r} in {key[0]!r} must be uint8 [H, W, 3] with sides of at most {SIDE} "
                    f"pixels; it is {picture.dtype} {list(picture.shape)}"
                )

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def places(self) -> Mapping[tuple[str, str], int]:
        """The number of each picture by set and sample id."""
        return {key: number for number, key in enumerate(self.keys)}

    def save(self, path: Path | str) -> None:
        """Write one safetensors file: a tensor for each picture, names in its header."""
        tensors = {f"{number:05d}": np.ascontiguousarray(picture) for number, picture in enumerate(self.pictures)}
        about = json.dumps({"keys": self.keys, "class_names": self.class_names}, ensure_ascii=False)
        with atomic_path(Path(path)) as temporary:
            save_file(tensors, temporary, metadata={_ABOUT: about})

    @classmethod
    def load(cls, path: Path | str) -> "Gallery":
        """Read what ``save`` wrote, and check it as strictly as a new one."""
        try:
            with safe_open(path, framework="numpy") as file:
                about: dict[str, Any] = json.loads((file.metadata() or {})[_ABOUT])
                keys = tuple((str(name), str(sample)) for name, sample in about["keys"])
                pictures = tuple(file.get_tensor(f"{number:05d}") for number in range(len(keys)))
            return cls(keys, pictures, tuple(map(str, about["class_names"])))
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise DataError(f"{path}: not a gallery: {error}") from error
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
