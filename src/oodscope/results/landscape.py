"""Landscape: what samplers find their way through, drawn for one outlier, and how fast each of them falls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path

Numbers = NDArray[np.float64]

_ARRAYS = ("x", "y", "scores")
_MAPS = ("paths", "lowest")


@dataclass(frozen=True)
class Landscape:
    """The score of one outlier over two coordinates of a variation, with the paths of samplers that stay in this plane.

    All scores are in the unit of an attack: 0 is the mean of ID validation, 1 their standard deviation.

    Parameters
    ----------
    chain : place of the outlier among the source images.
    coordinates : the names of both, with their units; all others stay where they leave the image as it is.
    x, y : values of the first and of the second coordinate.
    scores : ``[len(y), len(x)]``.
    paths : by sampler, ``[steps + 1, 3]``: both coordinates and the score of every state of one chain.
    budgets : evaluations per chain.
    lowest : by sampler, ``[len(budgets), chains]``: the lowest score within each budget, over all coordinates of the
        variation, one chain per source image, the same images for all samplers.
    """

    detector: str
    variation: str
    chain: int
    coordinates: tuple[str, str]
    x: Numbers
    y: Numbers
    scores: Numbers
    paths: Mapping[str, Numbers]
    budgets: tuple[int, ...]
    lowest: Mapping[str, Numbers]

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        words = {name: getattr(self, name) for name in ("detector", "variation", "chain", "coordinates", "budgets")}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        for name in _MAPS:
            kept: Mapping[str, Numbers] = getattr(self, name)
            words[name] = list(kept)
            arrays |= {f"{name}.{number}": array for number, array in enumerate(kept.values())}
        with atomic_path(path) as temporary:
            whole = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}
            save_file(whole, temporary, metadata={"landscape": json.dumps(words, ensure_ascii=False)})

    @classmethod
    def load(cls, path: Path) -> "Landscape":
        """Read what ``save`` wrote."""
        try:
            with safe_open(path, framework="numpy") as content:
                words: dict[str, Any] = json.loads(content.metadata()["landscape"])
                arrays = {name: content.get_tensor(name) for name in _ARRAYS}
                for name in _MAPS:
                    words[name] = {
                        each: content.get_tensor(f"{name}.{number}") for number, each in enumerate(words[name])
                    }
            words |= {name: tuple(words[name]) for name in ("coordinates", "budgets")}
            return cls(**words, **arrays)
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise DataError(f"{path}: not the landscape of an attack: {error}") from error
