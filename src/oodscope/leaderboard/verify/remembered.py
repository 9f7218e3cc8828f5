"""An examiner with a memory: what follows from the same files by the same code need not be found out twice."""

import json
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from oodscope.base.errors import OodscopeError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.leaderboard.records.board import Places
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import check_score_file
from oodscope.leaderboard.verify.examining import Examined, Placed, examine
from oodscope.metrics.comparison.influence import SetUnits
from oodscope.metrics.ranking.placements import Placements
from oodscope.results.measurement import Measurements

_STATIONS = ("base", "metrics", "protocols", "results")
"""Where the numbers come from: a change in any file of these folders is another examiner."""


class RememberedExaminer:
    """``examine``, and in a folder what it found before.

    The address of an answer is a hash of everything that the entry says, its checksum of the score file included, and
    of the code. That the file has this checksum is looked at each time, so an answer is found only where examining the
    entry again would give it again.

    Parameters
    ----------
    folder : where answers are kept; by default in the cache.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder) if folder is not None else cache_root() / "examined"

    def __call__(self, folder: Path, entry: Entry) -> Examined:
        check_score_file(folder, entry)
        path = self.folder / f"{fingerprint(_code(), entry.model_dump(mode='json'))}.safetensors"
        try:
            return _read(path)
        except (OSError, ValueError, LookupError, TypeError, SafetensorError, OodscopeError):
            found = examine(folder, entry)
        with atomic_path(path) as temporary:
            _write(temporary, found)
        return found


_UNITS = ("values", "plain", "of_id", "of_ood")


def _write(path: Path, found: Examined) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    places: list[list[Any]] = []
    for number, ((protocol, group), both) in enumerate(found.placed.items()):
        placed = both.images
        places.append([protocol, group, list(placed.of_ood), [[each.name, each.classes] for each in both.classes]])
        for place, each in enumerate(both.classes):
            arrays |= {f"{number} {place} {name}": np.ascontiguousarray(getattr(each, name)) for name in _UNITS}
        arrays[f"{number} id"] = np.ascontiguousarray(placed.of_id)
        arrays |= {f"{number} {name}": np.ascontiguousarray(values) for name, values in placed.of_ood.items()}
    rows = [asdict(row) for row in found.measurements]
    stored = {"measurements": rows, "flags": found.flags, "placed": places}
    save_file(arrays, path, metadata={"examined": json.dumps(stored)})


def _read(path: Path) -> Examined:
    with safe_open(path, framework="np") as file:
        stored = json.loads(file.metadata()["examined"])
        placed: Placed = {
            (protocol, group): Places(
                Placements(
                    file.get_tensor(f"{number} id"), {name: file.get_tensor(f"{number} {name}") for name in names}
                ),
                tuple(
                    SetUnits(
                        name=name,
                        classes=None if classes is None else tuple(classes),
                        **{each: file.get_tensor(f"{number} {place} {each}") for each in _UNITS},
                    )
                    for place, (name, classes) in enumerate(units)
                ),
            )
            for number, (protocol, group, names, units) in enumerate(stored["placed"])
        }
    return Examined(Measurements.from_rows(stored["measurements"]), placed, tuple(stored["flags"]))


@cache
def _code() -> str:
    """A hash of the code that computes the numbers, and of the libraries that it computes with."""
    digest = sha256()
    root = Path(__file__).parents[2]
    for path in sorted(path for name in _STATIONS for path in (root / name).rglob("*.py")):
        digest.update(path.read_bytes())
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas")]
    return f"{digest.hexdigest()} {' '.join(libraries)}"
