"""What a cross-validation knows beyond its metrics: the accuracy of each network, and each OOD class by itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.results import scorefile

DRAW = ("kind", "repetition", "fold", "training", "pair")
NETWORK = (*DRAW, "id_accuracy", "n_id")
CLASS = (*DRAW, "detector", "ood_class", "auroc", "n_ood")
_FILES = {"networks": NETWORK, "classes": CLASS}


@dataclass(frozen=True, eq=False)
class FoldDetails:
    """Facts of every draw that are no metric of a detector.

    Parameters
    ----------
    networks : a row per draw, training and pair: the share of the draw's ID test images that its network classifies
        rightly (``id_accuracy``), and how many there are. A plain network serves all pairs of its ID set.
    classes : a row per draw, training, pair, detector and tested OOD class: the AUROC of that class against all ID
        test images of the draw, and its images.
    """

    networks: pd.DataFrame
    classes: pd.DataFrame

    def __post_init__(self) -> None:
        for name, columns in _FILES.items():
            frame: pd.DataFrame = getattr(self, name)
            if list(frame.columns) != list(columns):
                raise DataError(f"{name} of a cross-validation have the columns {', '.join(columns)}, not these")
            value = "id_accuracy" if name == "networks" else "auroc"
            if not frame[value].between(0.0, 1.0).all():
                raise DataError(f"{name} of a cross-validation: {value} lies between 0 and 1")

    @classmethod
    def of_rows(cls, networks: Iterable[Mapping[str, Any]], classes: Iterable[Mapping[str, Any]]) -> "FoldDetails":
        """From one mapping per row."""
        frames = (pd.DataFrame(list(networks), columns=list(NETWORK)), pd.DataFrame(list(classes), columns=list(CLASS)))
        return cls(*frames)

    @classmethod
    def concat(cls, parts: Iterable["FoldDetails"]) -> "FoldDetails":
        """The rows of several."""
        given = list(parts)
        joined = (pd.concat([getattr(part, name) for part in given], ignore_index=True) for name in _FILES)
        return cls(*joined)

    def save(self, folder: Path) -> list[Path]:
        """Write ``networks.parquet`` and ``classes.parquet``."""
        for name in _FILES:
            scorefile.write(folder / f"{name}.parquet", getattr(self, name), {}, _kind(name))
        return [folder / f"{name}.parquet" for name in _FILES]

    @classmethod
    def load(cls, folder: Path) -> "FoldDetails | None":
        """Read what ``save`` wrote; ``None`` where nothing was written."""
        if not (folder / "networks.parquet").exists():
            return None
        return cls(*(scorefile.read(folder / f"{name}.parquet", _kind(name))[0] for name in _FILES))

    def class_values(
        self, kind: str, repetitions: Iterable[int], training: str, pair: str, detectors: Iterable[str]
    ) -> NDArray[np.float64]:
        """``[class, detector]``: the AUROC of each OOD class, averaged over the draws in which it was tested."""
        frame = self.classes
        own = (frame["kind"] == kind) & (frame["training"] == training) & (frame["pair"] == pair)
        own &= frame["repetition"].isin(list(repetitions))
        table = frame[own.to_numpy()].pivot_table(index="ood_class", columns="detector", values="auroc", observed=True)
        return np.asarray(table.reindex(columns=list(detectors)).to_numpy(dtype=np.float64))


def _kind(name: str) -> str:
    return f"cross-validation {name}"
