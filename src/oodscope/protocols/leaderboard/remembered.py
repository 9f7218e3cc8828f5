"""A judge with a memory: numbers that follow from the same scores by the same code need not be computed twice."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pyarrow as pa

from oodscope.base.errors import OodscopeError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.protocols.leaderboard.judging import judge
from oodscope.results import Measurements, ScoreTable

_STATIONS = ("base", "metrics", "protocols", "results")
"""Where the numbers come from: a change in any file of these folders is another judge."""


class RememberedJudge:
    """``judge``, and in a folder what it said before.

    The address of an answer is a hash of every score, of all that the protocols know about them, and of the code. So
    an answer is found only where computing it again would give it again; whether an entry's file is the one it names
    is still checked each time, by the reader of entries.

    Parameters
    ----------
    folder : where answers are kept; by default in the cache.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder) if folder is not None else cache_root() / "judged"

    def __call__(self, scores: ScoreTable, protocols: Mapping[str, int]) -> Measurements:
        path = self.folder / f"{_address(scores, protocols)}.parquet"
        try:
            return Measurements.from_dataframe(pd.read_parquet(path, partitioning=None))
        except (OSError, ValueError, pa.ArrowException, OodscopeError):
            found = judge(scores, protocols)
        with atomic_path(path) as temporary:
            found.to_dataframe().to_parquet(temporary, index=False)
        return found


def _address(scores: ScoreTable, protocols: Mapping[str, int]) -> str:
    frame = scores.frame
    texts = [frame[name].astype(str).tolist() for name in frame.columns if frame[name].dtype.kind not in "if"]
    numbers = [frame[name].to_numpy() for name in frame.columns if frame[name].dtype.kind in "if"]
    return fingerprint(_code(), list(protocols.items()), scores.metadata, list(frame.columns), texts, *numbers)


@cache
def _code() -> str:
    """A hash of the code that computes the numbers, and of the libraries that it computes with."""
    digest = sha256()
    root = Path(__file__).parents[2]
    for path in sorted(path for name in _STATIONS for path in (root / name).rglob("*.py")):
        digest.update(path.read_bytes())
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas")]
    return f"{digest.hexdigest()} {' '.join(libraries)}"
