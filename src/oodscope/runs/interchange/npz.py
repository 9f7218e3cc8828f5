"""Scores that another tool kept as .npz files, one per set, as a frame that ``evaluate_scores`` reads.

OpenOOD saves the arrays ``pred``, ``conf`` and ``label`` of every set, a larger confidence meaning more
in-distribution; the names and the direction are parameters here. Pickles are refused, those inside an .npz file too:
opening one runs whatever its maker put in. Ten lines turn them into .npz on your own side (docs/interchange.md).
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oodscope.base.errors import DataError

_ROLES = ("id_test", "id_val", "near", "far", "csid")


@dataclass(frozen=True)
class ArrayNames:
    """How the arrays of a file are called.

    Parameters
    ----------
    score : one number per image.
    prediction, label : classes; a file may lack them, and labels of OOD sets are not used.
    larger_is_ood : the direction of ``score``; by default a larger one means more in-distribution, as in OpenOOD.
    """

    score: str = "conf"
    prediction: str = "pred"
    label: str = "label"
    larger_is_ood: bool = False


def read_score_arrays(
    files: Mapping[tuple[str, str], Mapping[str, Path]], names: ArrayNames | None = None
) -> pd.DataFrame:
    """A row per image, a column per detector, larger = more OOD.

    Parameters
    ----------
    files : by role and name of the set, the file of each detector. Files of one set list the same images in one order.
    """
    names, parts = names or ArrayNames(), []
    for (role, name), by_detector in files.items():
        if role not in _ROLES:
            raise DataError(f"{role} is no role of scores; choose from: {', '.join(_ROLES)}")
        columns: dict[str, Any] = {}
        for detector, path in by_detector.items():
            arrays = _read(path, names)
            columns[detector] = arrays["score"] if names.larger_is_ood else -arrays["score"]
            for key in ("prediction", "label"):
                if key not in arrays or (key == "label" and role in ("near", "far")):
                    continue
                if key in columns and not np.array_equal(columns[key], arrays[key]):
                    raise DataError(f"{path}: its {key}s are not those of the set's other files; another order, or set")
                columns[key] = arrays[key]
        lengths = {len(each) for each in columns.values()}
        if len(lengths) > 1:
            raise DataError(
                f"{name}: files of {' and '.join(f'{n:,}' for n in sorted(lengths))} images; one set has one"
            )
        parts.append(pd.DataFrame({"set": name, "role": role, **columns}))
    return pd.concat(parts, ignore_index=True)


def _read(path: Path, names: ArrayNames) -> dict[str, Any]:
    try:
        if not zipfile.is_zipfile(path):
            if not path.exists():
                raise DataError(f"{path}: no such file")
            raise DataError(f"{path}: not an .npz file. Pickles are not read: see docs/interchange.md for ten lines")
        with np.load(path, allow_pickle=False) as held:
            wanted = {"score": names.score, "prediction": names.prediction, "label": names.label}
            if names.score not in held.files:
                raise DataError(f"{path}: has no array {names.score!r}; it has {', '.join(held.files)}")
            arrays = {key: held[name] for key, name in wanted.items() if name in held.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not readable without running code ({str(error).splitlines()[0]})") from error
    score = np.asarray(arrays["score"], dtype=np.float64)
    if score.ndim != 1 or not len(score) or not np.isfinite(score).all():
        raise DataError(f"{path}: {names.score} must be a list of finite numbers, one per image")
    whole = {key: np.asarray(arrays[key]).astype(np.int64) for key in arrays if key != "score"}
    return {"score": score, **whole}
